"""The rows of the tables, one class a table. A column without a figure is None: nothing here was guessed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp4"]
FabricNeed = Literal["required", "preferred", "none"]  # of a fast network between nodes

# The first compute capability whose tensor cores know the format (NVIDIA CUDA C++ Programming Guide, compute
# capabilities); fp32 and fp16 are older than every GPU of the tables.
FIRST_COMPUTE_CAPABILITY: dict[Precision, float] = {"tf32": 8.0, "bf16": 8.0, "fp8": 8.9, "fp4": 10.0}


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One row of gpus.csv: a GPU as its maker sells it.

    *_dense_tflops: peak without sparsity. bf16_measured_tflops: the most that a tuned matrix product reached (MAMF).
    memory_gb: as advertised; what a cloud leaves of it stands with the type. nvlink_gb_per_s: both directions together,
    0 without NVLink. mig_profiles: "<instances>x<profile>". driver_branch_min: R-branch. cuda_last: None while
    supported. confidence: in the figures, "high", "medium" or "low". date: the day the source was read.
    """

    name: str
    architecture: str
    compute_capability: float
    cuda_cores: int | None = None
    tensor_cores: int | None = None
    fp32_dense_tflops: float | None = None
    tf32_dense_tflops: float | None = None
    bf16_dense_tflops: float | None = None
    fp16_dense_tflops: float | None = None
    fp8_dense_tflops: float | None = None
    fp4_dense_tflops: float | None = None
    int8_dense_tops: float | None = None
    bf16_measured_tflops: float | None = None
    memory_gb: int
    memory_type: str | None = None
    memory_gb_per_s: float | None = None
    nvlink_gb_per_s: float | None = None
    mig_profiles: tuple[str, ...] = ()
    driver_branch_min: int | None = None
    cuda_first: str | None = None
    cuda_last: str | None = None
    tdp_w: int | None = None
    confidence: str
    source: str
    date: date
    notes: str = ""

    def has(self, precision: Precision) -> bool:
        """Whether the hardware computes in this format at all; whether its rate is known is another question."""
        return self.compute_capability >= FIRST_COMPUTE_CAPABILITY.get(precision, 0.0)

    def dense_tflops(self, precision: Precision) -> float | None:
        """The peak rate without sparsity, None where the format is missing or no figure is known."""
        return getattr(self, f"{precision}_dense_tflops")

    def measured_tflops(self, precision: Precision) -> float | None:
        """The measured rate, None without a measurement: the tables have measurements of bf16 only."""
        return self.bf16_measured_tflops if precision == "bf16" else None

    @property
    def measured_share(self) -> float | None:
        """The part of the dense bf16 peak that was measured, None without both figures."""
        if self.bf16_measured_tflops is None or self.bf16_dense_tflops is None:
            return None
        return self.bf16_measured_tflops / self.bf16_dense_tflops


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One row of types.csv: a machine as a cloud rents it.

    gpu: a name of gpus.csv, None for a machine without one. gpu_share: the part of a GPU that each of its GPUs is,
    below 1 for a virtual slice. gpu_memory_mib: usable on each. nvlink: between this machine's GPUs. network_gbps: of
    all cards; with network_burst only for a while. The interfaces follow by rule from the next six: network_cards,
    interfaces_per_card (the most that each card holds), fabric ("efa", "erdma", "roce", "ib", None without
    one), fabric_gbps (of the machine),
    fabric_interfaces (as many cards carry one each, 0 without fabric) and fabric_on_first_card (where the first card
    carries only the plain network, the fabric begins on the second). disk_gb: of each local disk. date: the day the
    source was read.
    """

    cloud: str
    name: str
    gpu: str | None = None
    gpu_count: int
    gpu_share: float
    gpu_memory_mib: int | None = None
    nvlink: bool
    vcpus: int | None = None
    memory_gib: int | None = None
    cpu_arch: str
    network_gbps: float | None = None
    network_burst: bool | None = None
    network_cards: int | None = None
    interfaces_per_card: int | None = None
    fabric: str | None = None
    fabric_gbps: float | None = None
    fabric_interfaces: int | None = None
    fabric_on_first_card: bool | None = None
    disk_count: int | None = None
    disk_gb: int | None = None
    boot_modes: tuple[str, ...] = ()
    usage_classes: tuple[str, ...]
    source: str
    date: date
    notes: str = ""

    @property
    def gpu_memory_gib(self) -> float | None:
        """Usable memory of each GPU."""
        return None if self.gpu_memory_mib is None else self.gpu_memory_mib / 1024


@dataclass(frozen=True, kw_only=True)
class Price:
    """One row of prices.csv: what a type costs on demand in a region (Linux). date: the day on which it cost that.

    currency: the ISO code of the currency that the cloud bills in; nothing is converted here.
    """

    type: str
    region: str
    on_demand_per_hour: float
    currency: str = "USD"
    source: str
    date: date


@dataclass(frozen=True, kw_only=True)
class Extra:
    """One row of extras.csv: what one of something beside the nodes costs in a region, as long as it is there.

    item: an id, which a cloud's pricing gives a name. usd: for so many `hours`: 1, or the 730 of a month. date: the day
    the source was read.
    """

    item: str
    region: str
    usd: float
    hours: int
    source: str
    date: date

    @property
    def usd_per_hour(self) -> float:
        return self.usd / self.hours


@dataclass(frozen=True, kw_only=True)
class Offering:
    """One row of offerings.csv: a region that has a type, and where in it.

    zone_ids: availability zones by their ids (use1-az2), which mean the same zone in every account; names (us-east-1a)
    do not. date: the day the source was read.
    """

    type: str
    region: str
    zone_ids: tuple[str, ...]
    source: str
    date: date


@dataclass(frozen=True, kw_only=True)
class SpotPrice:
    """One row of spot.csv: what a type cost as spot in a zone (Linux).

    usd_per_hour: the mean over time; least_usd_per_hour, most_usd_per_hour: the bounds. days: how many were watched, 0
    for a single look. placement_score: 1 to 10, how likely a request is met; None without a score. date: the last day
    of the observations; where that is not recorded, the day the source was read.
    """

    type: str
    region: str
    zone_id: str
    usd_per_hour: float
    least_usd_per_hour: float
    most_usd_per_hour: float
    days: int
    placement_score: int | None = None
    source: str
    date: date
