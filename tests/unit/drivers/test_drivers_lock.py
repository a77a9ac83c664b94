"""The lock as shipped: it covers every GPU of the tables, holds together, and says what is not exact."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from infra import catalog
from infra.catalog import TableError, compatibility, drivers

LOCK, TABLES = drivers.load(), catalog.load()
PASCAL = ("P100-PCIE-16GB", "P4")  # too old for any: CUDA 13 has no code for them
GPUS = [gpu.name for gpu in TABLES.gpus if gpu.name not in PASCAL]
LOCKED = [(gpu.name, distribution) for gpu in TABLES.gpus for distribution in LOCK.by_distribution(gpu)]
REQUIREMENTS = (Path(__file__).parents[3] / "requirements.txt").read_text()


@pytest.mark.parametrize(("gpu", "distribution"), LOCKED)
def test_every_locked_tuple_is_accepted_with_every_fabric(gpu: str, distribution: str) -> None:
    row = LOCK.of(TABLES.gpu(gpu), distribution)

    for fabric in (None, *LOCK.fabrics):
        assert compatibility.faults(row, TABLES.gpu(gpu), distribution, fabric) == ()


@pytest.mark.parametrize("gpu", GPUS)
def test_every_gpu_of_the_tables_has_a_tuple_on_ubuntu(gpu: str) -> None:
    assert LOCK.of(TABLES.gpu(gpu), "ubuntu2404").driver


@pytest.mark.parametrize("gpu", PASCAL)
def test_pascal_has_no_tuple_anywhere(gpu: str) -> None:
    with pytest.raises(drivers.NoTupleError, match="no distribution has one"):
        LOCK.of(TABLES.gpu(gpu), "ubuntu2404")


def test_volta_ends_where_its_driver_does() -> None:
    with pytest.raises(
        drivers.NoTupleError, match=r"V100.*on debian13: choose one of debian12, rhel9, ubuntu2204, ubuntu2404"
    ):
        LOCK.of(TABLES.gpu("V100-SXM2-32GB"), "debian13")


def test_the_lock_runs_the_torch_that_jobs_are_installed_with() -> None:
    newest = [row for row in LOCK.tuples if row.architecture != "Volta"]

    assert all(f"\ntorch=={row.torch} " in REQUIREMENTS for row in newest)
    assert all(f"\nnvidia-nccl-cu13=={row.nccl} " in REQUIREMENTS for row in newest)


def test_every_row_has_its_source_and_its_day() -> None:
    for row in (*LOCK.tuples, *LOCK.fabrics, *LOCK.known_bad):
        assert row.source
        assert date(2026, 1, 1) <= row.date <= date(2026, 11, 21)


def test_what_is_not_exact_is_said() -> None:
    assert LOCK.of(TABLES.gpu("V100-SXM2-16GB"), "ubuntu2404").unlocked == ("nccl",)
    assert LOCK.of(TABLES.gpu("B200"), "debian12").unlocked == ("nvlsm",)
    assert LOCK.of(TABLES.gpu("T4"), "rhel9").unlocked == ("dcgm_exporter",)
    assert LOCK.of(TABLES.gpu("B200"), "ubuntu2404").unlocked == ()


def test_a_node_is_told_versions_and_nothing_that_is_not_locked() -> None:
    told = LOCK.of(TABLES.gpu("T4"), "debian12").to_handover()

    assert told["driver"] == "580.178.04"
    assert told["dcgm_cuda"] == ["13"]
    assert not {"fabric_manager", "nvlsm", "notes", "source"} & set(told)


def test_two_rows_for_one_generation_and_distribution_are_refused() -> None:
    again = replace(LOCK.tuples[0], driver="580.126.20", distributions=("debian12",))

    with pytest.raises(TableError, match=r"drivers.csv: Volta on debian12 stands there twice"):
        replace(LOCK, tuples=(*LOCK.tuples, again))
