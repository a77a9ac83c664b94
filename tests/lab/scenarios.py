"""The nodes that gpu_node.yml is for: one of each kind, as its cloud or its owner has it."""

from __future__ import annotations

from gpu_machines import Hardware

from infra.clouds.aws.plan.volumes import scratch
from infra.handover import Disks

SCRATCH = scratch(disks=2, disk_gb=1000)


def with_efa(model: str, gpu: str, distribution: str, *, cards: int) -> Hardware:
    """Eight GPUs, and cards of EFA by the names that their driver gives them."""
    names = tuple(f"rdmap{i}s0" for i in range(cards))
    return Hardware(model=model, gpu=gpu, count=8, distribution=distribution, fabric="efa", cards=names)


SCENARIOS = {
    "v100": Hardware(model="v100", gpu="V100-SXM2-32GB", count=8, distribution="ubuntu2404"),
    "t4": Hardware(model="t4", gpu="T4", count=1, distribution="debian12"),
    "a10": Hardware(model="a10", gpu="A10", count=1, distribution="ubuntu2404"),
    "a100-efa": with_efa("a100", "A100-SXM4-80GB", "ubuntu2404", cards=4),
    "h100-efa": with_efa("h100", "H100-SXM5-80GB", "debian12", cards=32),
    "b200-efa": with_efa("b200", "B200", "ubuntu2404", cards=8),
    "b300-efa": with_efa("b300", "B300", "debian12", cards=16),
    "ebmgn7ex-erdma": Hardware(
        model="a100",
        gpu="A100-SXM4-80GB",
        count=8,
        distribution="ubuntu2404",
        fabric="erdma",
        cards=("erdma_0", "erdma_1"),
    ),
    "own-infiniband": Hardware(
        model="h100",
        gpu="H100-SXM5-80GB",
        count=8,
        distribution="debian12",
        fabric="infiniband",
        cards=tuple(f"mlx5_{i}" for i in range(8)),
    ),
    "mig": Hardware(
        model="a100",
        gpu="A100-SXM4-80GB",
        count=2,
        distribution="debian12",
        mig=("4g.40gb", "2g.20gb", "1g.10gb"),
    ),
    "cpu-head": Hardware(
        model="t4",
        gpu="T4",
        count=0,
        distribution="ubuntu2404",
        devices={"/dev/nvme1n1": "", "/dev/nvme2n1": ""},
        disks=tuple(Disks.of(each) for each in [SCRATCH] if each),
    ),
}
