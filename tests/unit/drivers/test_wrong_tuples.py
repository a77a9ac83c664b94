"""Tuples that cannot run, each changed in one way from a locked one: refused before anything is installed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from infra import catalog
from infra.catalog import drivers
from infra.catalog.compatibility import faults

V100, T4, L4, A100 = "V100-SXM2-32GB", "T4", "L4", "A100-SXM4-80GB"
H100, B200, B300 = "H100-SXM5-80GB", "B200", "B300"
UBUNTU, TRIXIE = "ubuntu2404", "debian13"

WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    (A100, UBUNTU, {"fabric_manager": "580.126.20"}, "fabric manager 580.126.20 must be the driver's own version"),
    (H100, UBUNTU, {"driver": "595.91.07"}, "fabric manager 580.178.04 must be the driver's own version, 595.91.07"),
    (B200, UBUNTU, {"fabric_manager": None}, "boards have NVSwitches, and the tuple has no fabric manager"),
    (T4, UBUNTU, {"fabric_manager": "580.178.04"}, "Turing has no NVSwitch"),
    (H100, UBUNTU, {"nvlsm": "2025.10.14"}, "nvlsm manages NVLink 5, which Hopper does not have"),
    (V100, UBUNTU, {"driver": "610.57.04"}, "580 is the last driver for Volta, not 610"),
    (V100, UBUNTU, {"driver": "595.91.07"}, "580 is the last driver for Volta, not 595"),
    (V100, UBUNTU, {"flavour": "open"}, "the open module does not run V100-SXM2-32GB"),
    (B200, UBUNTU, {"flavour": "proprietary"}, "the proprietary module does not run B200"),
    (B300, UBUNTU, {"flavour": "proprietary"}, "the proprietary module does not run B300"),
    (V100, UBUNTU, {"cuda_toolkit": "13.0.2"}, "CUDA 12 is the last for V100-SXM2-32GB, not 13.0.2"),
    (V100, UBUNTU, {"torch": "2.12.0", "torch_cuda": "cu130"}, "torch for cu130 has no code for V100"),
    (V100, UBUNTU, {"torch": "2.15.0", "torch_cuda": "cu132"}, "torch for cu132 has no code for V100"),
    (V100, UBUNTU, {"torch_cuda": "cu128"}, "torch for cu128 has no code for V100"),
    (B200, UBUNTU, {"torch": "2.12.0", "torch_cuda": "cu126"}, "torch for cu126 has no code for B200"),
    (B300, UBUNTU, {"torch": "2.12.0", "torch_cuda": "cu126"}, "torch for cu126 has no code for B300"),
    (A100, UBUNTU, {"torch_cuda": "cu126"}, "torch 2.15.0 is built for cu132, not cu126"),
    (A100, UBUNTU, {"torch": "2.16.0"}, "torch 2.16.0 is none of"),
    (A100, UBUNTU, {"torch": "2.9.1"}, "a checkpoint can run code although weights_only is set (CVE-2026-24747)"),
    (A100, UBUNTU, {"nccl": "2.28.9"}, "torch 2.15.0 brings NCCL 2.30.7, not 2.28.9"),
    (A100, UBUNTU, {"driver": "535.261.03"}, "driver branch 535 had its last fix in June 2026"),
    (A100, UBUNTU, {"driver": "610.57.04"}, "driver branch 610 had its last fix in August 2026"),
    (A100, UBUNTU, {"driver": "615.71.09"}, "driver branch 615 is none of"),
    (A100, UBUNTU, {"driver": "535.261.03"}, "torch for cu132 needs driver 580 or newer, not 535"),
    (A100, UBUNTU, {"driver": "580"}, "driver 580 is no exact version such as 580.178.04"),
    (A100, UBUNTU, {"driver": "580.*"}, "driver 580.* is no exact version such as 580.178.04"),
    (A100, UBUNTU, {"date": date(2028, 7, 1)}, "driver branch 580 had its last fix in June 2028"),
    (B300, UBUNTU, {"driver": "570.195.03"}, "B300 needs driver 580 or newer, not 570"),
    (A100, UBUNTU, {"cuda_toolkit": "13.2.1"}, "CUDA toolkit 13.2.1 needs driver 595.58.03 or newer, not 580.178.04"),
    (A100, UBUNTU, {"driver": "580.65.06"}, "CUDA toolkit 13.0.2 needs driver 580.95.05 or newer, not 580.65.06"),
    (B300, UBUNTU, {"cuda_toolkit": "12.9.1"}, "B300 needs CUDA 13.0 or newer, not 12.9.1"),
    (A100, UBUNTU, {"cuda_toolkit": "13.4.0"}, "CUDA toolkit 13.4.0 is none of"),
    (A100, UBUNTU, {"dcgm_cuda": ("12",)}, "DCGM lacks its parts for CUDA 13, which driver 580 wants"),
    (V100, UBUNTU, {"dcgm_cuda": ("13",)}, "DCGM lacks its parts for CUDA 12, which driver 580 wants"),
    (A100, UBUNTU, {"dcgm": "3.3.9"}, "dcgm 3.3.9: the old package throws version 4 out and sees no NVSwitch"),
    (A100, UBUNTU, {"dcgm": "4.5.2"}, "dcgm-exporter 4.8.2 is built on DCGM 4.5.3, newer than 4.5.2"),
    (A100, UBUNTU, {"container_toolkit": "1.17.3"}, "a crafted image reaches the root folder of the node"),
    (A100, TRIXIE, {"driver": "580.178.04"}, "the repository of debian13 begins at driver 590, and has no 580"),
    (L4, UBUNTU, {"architecture": "Ampere"}, "L4 is of Ada, and the tuple of Ampere"),
]


def reasons(gpu: str, distribution: str, changes: dict[str, Any], **beside: Any) -> str:
    """Why the locked tuple with these changes is refused."""
    found = catalog.load().gpu(gpu)
    row = drivers.load().of(found, distribution)
    return "\n".join(faults(replace(row, **changes), found, distribution, **beside))


@pytest.mark.parametrize(("gpu", "distribution", "changes", "reason"), WRONG)
def test_a_wrong_tuple_is_refused_with_its_reason(
    gpu: str, distribution: str, changes: dict[str, Any], reason: str
) -> None:
    assert reason in reasons(gpu, distribution, changes)


def test_a_distribution_without_a_known_repository_is_refused() -> None:
    found = catalog.load().gpu(A100)

    assert "repository of amzn2023 is not known" in "\n".join(
        faults(drivers.load().of(found, UBUNTU), found, distribution="amzn2023")
    )


@pytest.mark.parametrize(
    ("fabric", "changes", "parts", "reason"),
    [
        ("efa", {"installer": "1.28.0"}, {}, "efa 1.28.0 beside nccl 2.30.7: its NCCL plug-in is older"),
        ("efa", {"sha256": "fa6dff85"}, {}, "the sha256 of the efa installer is none"),
        ("efa", {}, {"plugin": "1.14.0"}, "installer 1.50.0 brings plug-in 1.21.1, not 1.14.0"),
        ("efa", {}, {"efa_device_plugin": "0.5.9"}, "the plug-in does not see the cards of p6-b200"),
    ],
)
def test_a_wrong_fabric_is_refused_with_its_reason(
    fabric: str, changes: dict[str, Any], parts: dict[str, str], reason: str
) -> None:
    installer = drivers.load().fabric(fabric)
    assert installer

    assert reason in reasons(B200, UBUNTU, {}, fabric=replace(installer, **changes), parts=parts)


@pytest.mark.parametrize("nccl", ["2.28.7", "2.28.9"])
def test_an_nccl_that_fails_over_erdma_is_refused_there_and_nowhere_else(nccl: str) -> None:
    older = {"torch": "2.11.0", "torch_cuda": "cu126", "nccl": nccl}

    assert f"nccl {nccl} beside erdma 1.5.7" in reasons(A100, UBUNTU, older, fabric=drivers.load().fabric("erdma"))
    assert reasons(A100, UBUNTU, older, fabric=drivers.load().fabric("efa")) == ""


def test_every_mistake_is_named_in_one_run() -> None:
    found = reasons(V100, UBUNTU, {"flavour": "open", "cuda_toolkit": "13.0.2", "torch_cuda": "cu128"})

    assert found.count("\n") == 2


def test_more_than_thirty_ways_to_be_wrong_are_refused() -> None:
    """Shown by `pytest -rP`: what was changed, and why it is refused."""
    refused = [(gpu, changes, reasons(gpu, name, changes)) for gpu, name, changes, _ in WRONG]

    for gpu, changes, why in refused:
        print(f"{gpu:16} {', '.join(f'{key} {value}' for key, value in changes.items()):44} {why.splitlines()[0]}")
    assert len([why for _, _, why in refused if why]) == len(WRONG) >= 30
