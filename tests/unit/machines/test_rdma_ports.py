"""The check of RDMA ports, on folders as the kernel shows them: each fault is told with what to do about it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECK = Path(__file__).resolve().parents[3] / "playbooks" / "roles" / "rdma_ports" / "files" / "ports.py"
EXPECTED = {
    "link_layer": "InfiniBand",
    "hcas": ["mlx5_0", "mlx5_1"],
    "gbits": 400,
    "partition_key": "0x8012",
    "partition_index": 1,
}
SOUND = {
    "state": "4: ACTIVE",
    "link_layer": "InfiniBand",
    "rate": "400 Gb/sec (4X NDR)",
    "sm_lid": "0x1",
    "pkeys/0": "0xffff",
    "pkeys/1": "0x8012",
}


def looked(folder: Path, changed: dict[str, str], expected: dict[str, Any] = EXPECTED) -> tuple[int, list[str]]:
    """What the check says when mlx5_1's port is changed."""
    for hca in ("mlx5_0", "mlx5_1"):
        for name, text in SOUND.items():
            file = folder / hca / "ports" / "1" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(changed.get(name, text) + "\n" if hca == "mlx5_1" else text + "\n")
    command = [sys.executable, CHECK, json.dumps(expected), folder]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stderr == ""
    return answer.returncode, answer.stdout.splitlines()


def test_sound_ports_are_one_line(tmp_path: Path) -> None:
    assert looked(tmp_path, {}) == (0, ["2 ports of InfiniBand, 400 Gbit/s each"])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"state": "1: DOWN", "rate": "10 Gb/sec (4X SDR)"}, "mlx5_1: port is DOWN: look at its cable and switch"),
        ({"state": "2: INIT"}, "mlx5_1: port is INIT and waits for a subnet manager"),
        ({"sm_lid": "0x0"}, "mlx5_1: no subnet manager has found it"),
        ({"rate": "200 Gb/sec (4X HDR)"}, "mlx5_1: runs at 200 Gbit/s, not 400"),
        ({"link_layer": "Ethernet"}, "mlx5_1: is Ethernet, not InfiniBand"),
        ({"pkeys/1": "0x0000"}, "mlx5_1: partition key 0x0000 at index 1, not 0x8012"),
    ],
)
def test_a_fault_of_one_port_is_told_with_its_remedy(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    code, lines = looked(tmp_path, changed)

    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(words)


def test_a_missing_device_is_told(tmp_path: Path) -> None:
    code, lines = looked(tmp_path, {}, {**EXPECTED, "hcas": ["mlx5_0", "mlx5_7"]})

    assert (code, lines) == (1, ["mlx5_7: is missing: see `lspci -d 15b3:` and the driver's log"])


def test_ethernet_has_no_subnet_manager(tmp_path: Path) -> None:
    expected = {**EXPECTED, "link_layer": "Ethernet", "partition_key": None, "partition_index": None}
    ethernet = {"link_layer": "Ethernet", "sm_lid": "0x0"}

    code, _ = looked(tmp_path, ethernet, {**expected, "hcas": ["mlx5_1"]})

    assert code == 0
