"""The lock: which driver and which software above it a node of a GPU generation runs, exact to the version.

A node gets the whole of one row of drivers.csv or nothing, since the parts are proven together. Versions are those of
the maker, without a distribution's epoch and revision. A cell is empty where no source gives an exact version:
`unlocked` names those. What the rows must hold among themselves stands in `compatibility`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from infra.catalog.rows import Gpu
from infra.catalog.table import TABLES, TableError, read, twice

NVSWITCH_GENERATIONS = ("Ampere", "Hopper", "Blackwell", "Blackwell Ultra")  # of the SXM boards
NVLINK5_GENERATIONS = ("Blackwell", "Blackwell Ultra")  # their switches are managed through an InfiniBand card
ON_EVERY_NODE = ("cuda_toolkit", "dcgm", "dcgm_exporter", "container_toolkit", "torch", "torch_cuda", "nccl")


@dataclass(frozen=True, kw_only=True)
class DriverTuple:
    """One row of drivers.csv: the software of a GPU generation on some distributions (x86_64).

    distributions: in NVIDIA's spelling, as in the addresses of its repositories. flavour: of the kernel module, "open"
    or "proprietary". fabric_manager: for machines with an NVSwitch. nvlsm: NVLink's subnet manager, for those whose
    switch is of NVLink 5. cuda_toolkit: 13.0.2 is what NVIDIA calls 13.0 Update 2. dcgm_cuda: the CUDA majors that DCGM
    needs its parts for. torch_cuda: the wheel's tag. nccl: that the wheel brings. date: the day the row was locked.
    """

    architecture: str
    distributions: tuple[str, ...]
    driver: str
    flavour: str
    fabric_manager: str | None = None
    nvlsm: str | None = None
    cuda_toolkit: str | None = None
    dcgm: str | None = None
    dcgm_cuda: tuple[str, ...]
    dcgm_exporter: str | None = None
    container_toolkit: str | None = None
    torch: str | None = None
    torch_cuda: str | None = None
    nccl: str | None = None
    source: str
    date: date
    notes: str = ""

    @property
    def branch(self) -> int:
        """The driver's branch: 580 of 580.178.04."""
        return int(self.driver.partition(".")[0])

    @property
    def unlocked(self) -> tuple[str, ...]:
        """The parts without an exact version: a node takes the newest that its repository has, and holds that."""
        nvlink5 = ("nvlsm",) if self.architecture in NVLINK5_GENERATIONS else ()
        return tuple(part for part in (*nvlink5, *ON_EVERY_NODE) if getattr(self, part) is None)

    def to_handover(self) -> dict[str, Any]:
        """What a node needs to know of it, as plain JSON; without what is not locked."""
        parts = ("driver", "flavour", "fabric_manager", "nvlsm", *ON_EVERY_NODE)
        versions = {part: getattr(self, part) for part in parts if getattr(self, part) is not None}
        return {**versions, "dcgm_cuda": list(self.dcgm_cuda)}


@dataclass(frozen=True, kw_only=True)
class FabricInstaller:
    """One row of fabrics.csv: what brings a fabric's driver and libraries to a node.

    fabric: "efa", "erdma" or "infiniband" (DOCA-OFED). sha256: of the archive, None where a signed repository takes its
    place. plugin: the version of the NCCL plug-in inside.
    """

    fabric: str
    installer: str
    sha256: str | None = None
    plugin: str | None = None
    source: str
    date: date
    notes: str = ""

    def to_handover(self) -> dict[str, str]:
        """What a node needs to know of it, as plain JSON; without what is not known."""
        versions = {"installer": self.installer, "sha256": self.sha256, "plugin": self.plugin}
        return {part: version for part, version in versions.items() if version is not None}


@dataclass(frozen=True, kw_only=True)
class KnownBad:
    """One row of known_bad.csv: versions of a part that must not be used, alone or beside versions of another part.

    component, other: a column of the two tables above, or the name of a fabric, which means its installer. versions:
    all that hold, such as (">=2.19", "<2.29"); none for every version.
    """

    component: str
    versions: tuple[str, ...] = ()
    other: str | None = None
    other_versions: tuple[str, ...] = ()
    reason: str
    source: str
    date: date


class NoTupleError(ValueError):
    """No row covers a GPU on a distribution: one line with the remedy."""


@dataclass(frozen=True, kw_only=True)
class Drivers:
    """The lock as a whole. Raises TableError when two rows cover the same generation on the same distribution."""

    tuples: tuple[DriverTuple, ...]
    fabrics: tuple[FabricInstaller, ...]
    known_bad: tuple[KnownBad, ...]

    def __post_init__(self) -> None:
        covered = [(row.architecture, name) for row in self.tuples for name in row.distributions]
        problems = [
            f"drivers.csv: {architecture} on {name} stands there twice" for architecture, name in twice(covered)
        ]
        problems += [f"fabrics.csv: {name} stands there twice" for name in twice(row.fabric for row in self.fabrics)]
        if problems:
            raise TableError(problems)

    def of(self, gpu: Gpu, distribution: str) -> DriverTuple:
        """Raises NoTupleError."""
        for row in self.tuples:
            if row.architecture == gpu.architecture and distribution in row.distributions:
                return row
        known = sorted(self.by_distribution(gpu))
        remedy = f"choose one of {', '.join(known)}" if known else "no distribution has one"
        raise NoTupleError(f"no locked driver for {gpu.name} ({gpu.architecture}) on {distribution}: {remedy}")

    def by_distribution(self, gpu: Gpu) -> dict[str, DriverTuple]:
        """Every distribution that the GPU has a tuple on."""
        rows = (row for row in self.tuples if row.architecture == gpu.architecture)
        return {distribution: row for row in rows for distribution in row.distributions}

    def fabric(self, name: str) -> FabricInstaller | None:
        """What brings a fabric of this name; None for one that needs nothing."""
        return next((row for row in self.fabrics if row.fabric == name), None)


@cache
def load(folder: Path = TABLES) -> Drivers:
    """The lock of a folder, read once. Raises TableError."""
    return Drivers(
        tuples=read(folder / "drivers.csv", DriverTuple),
        fabrics=read(folder / "fabrics.csv", FabricInstaller),
        known_bad=read(folder / "known_bad.csv", KnownBad),
    )
