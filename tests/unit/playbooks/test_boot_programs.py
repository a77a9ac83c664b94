"""What makes disks and MIG slices at every boot, against programs that only remember."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.clouds.aws.plan.volumes import scratch
from infra.handover import Disks

ROLES = Path(__file__).parents[3] / "playbooks/roles"
STRIPE = {"name": "scratch", "mount": "/scratch", "file_system": "xfs", "raid_level": 0, "chunk_kib": 512}
SECRET = {"name": "kept", "mount": "/kept", "file_system": "xfs", "encrypted": True}


def program(role: str) -> Any:
    """The program of a role, as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"{role}_program", ROLES / role / "files" / f"{role}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Machine:
    """A machine with disks, in a folder. there: what is on each device. said: every command."""

    def __init__(self, root: Path, there: dict[str, str]) -> None:
        self.disks, self.root, self.there, self.said = program("disks"), root, there, []
        self.disks.KEYS, self.disks.ARRAYS, self.disks.OPENED = root / "keys", root / "arrays", root / "opened"
        self.disks.BLOCKS = root / "block"
        self.disks.run = self.run
        for device in there:
            (root / device).touch()

    def run(self, *command: Any, codes: tuple[int, ...] = (0,)) -> str:
        words = [str(word) for word in command]
        self.said.append(words)
        if words[0] == "blkid":
            there = self.there.get(Path(words[-1]).name)
            return f"DEVNAME={words[-1]}\n{'PTTYPE' if there == 'gpt' else 'TYPE'}={there}\n" if there else ""
        if words[0].startswith("mkfs."):
            self.there[Path(words[-1]).name] = words[0].removeprefix("mkfs.")
        return ""

    def make(self, devices: list[str], **wanted: Any) -> list[str]:
        """The programs that ran, without questions."""
        mount = self.root / "mounted" / wanted["name"]
        paths = tuple(str(self.root / device) for device in devices)
        told = Disks(count=len(devices), devices=paths, **{**wanted, "mount": str(mount)})
        self.disks.make(told.model_dump(mode="json"))
        return [" ".join(words[:2]) for words in self.said if words[0] != "blkid"]


def test_blank_disks_become_one_stripe(tmp_path: Path) -> None:
    ran = Machine(tmp_path, {"a": "", "b": ""}).make(["a", "b"], **STRIPE)

    assert ran == ["mdadm --create", "mkfs.xfs -L", "mount -o"]


def test_a_stripe_that_is_there_is_assembled_and_keeps_its_files(tmp_path: Path) -> None:
    there = {"a": "linux_raid_member", "b": "linux_raid_member", "scratch": "xfs"}

    assert Machine(tmp_path, there).make(["a", "b"], **STRIPE) == ["mdadm --assemble", "mount -o"]


@pytest.mark.parametrize("there", [{"a": "ext4", "b": ""}, {"a": "linux_raid_member", "b": ""}])
def test_a_disk_that_holds_something_is_refused(tmp_path: Path, there: dict[str, str]) -> None:
    machine = Machine(tmp_path, there)

    with pytest.raises(SystemExit, match=f"holds {there['a']}: look at it, and free it with `wipefs --all"):
        machine.make(["a", "b"], **STRIPE)
    assert {words[0] for words in machine.said} == {"blkid"}


@pytest.mark.parametrize("wanted", [STRIPE, SECRET, {**SECRET, "encrypted": False}])
def test_a_disk_with_partitions_is_refused_by_all_that_would_write_to_it(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    machine = Machine(tmp_path, {"a": "gpt"})

    with pytest.raises(SystemExit, match=f"{tmp_path}/a holds a gpt partition table: look at it"):
        machine.make(["a"], **wanted)
    assert {words[0] for words in machine.said} == {"blkid"}


def test_a_disk_whose_partitions_only_the_kernel_knows_is_refused(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"a": ""})
    (tmp_path / "block/a/a1").mkdir(parents=True)
    (tmp_path / "block/a/a1/partition").write_text("1\n")

    with pytest.raises(SystemExit, match=f"{tmp_path}/a holds a1: look at it"):
        machine.make(["a"], **SECRET)
    assert {words[0] for words in machine.said} == {"blkid"}


@pytest.mark.parametrize(
    ("said", "code", "found"),
    [
        ("", 2, ""),
        ("DEVNAME=/dev/a\nPTUUID=1\nPTTYPE=dos\n", 0, "a dos partition table"),
        ("DEVNAME=/dev/a1\nPART_ENTRY_SCHEME=gpt\nPART_ENTRY_NUMBER=1\n", 0, ""),
        ("DEVNAME=/dev/a\nLABEL=x\nTYPE=vfat\nPTTYPE=dos\n", 0, "vfat"),
        ("DEVNAME=/dev/a\nUSAGE=other\n", 0, "USAGE"),
    ],
)
def test_a_disk_is_blank_only_where_blkid_finds_nothing_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, found: str
) -> None:
    stand_in_blkid(tmp_path, monkeypatch, said, code)

    assert program("disks").holds(tmp_path / "a") == found


def test_a_disk_that_contradicts_itself_is_never_blank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_blkid(tmp_path, monkeypatch, "blkid: /dev/a: ambivalent result\n", 8)

    with pytest.raises(SystemExit, match=r"/a`: blkid: /dev/a: ambivalent result"):
        program("disks").holds(tmp_path / "a")


def stand_in_blkid(root: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int) -> None:
    (root / "blkid").write_text(f"#!/bin/sh\nprintf '{said}'\nexit {code}\n")
    (root / "blkid").chmod(0o755)
    monkeypatch.setenv("PATH", str(root), prepend=":")


def test_an_encrypted_disk_gets_a_key_that_only_root_reads_and_keeps_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"a": ""})

    ran = machine.make(["a"], **SECRET)
    key = tmp_path / "keys/kept"
    first = key.read_bytes()
    machine.there["a"] = "crypto_LUKS"
    again = machine.make(["a"], **SECRET)[len(ran) :]

    assert ran == ["cryptsetup luksFormat", "cryptsetup open", "mkfs.xfs -L", "mount -o"]
    assert again == ["cryptsetup open", "mount -o"]
    assert (key.stat().st_mode & 0o777, key.read_bytes() == first, len(first)) == (0o400, True, 64)
    assert not any(first in " ".join(words).encode() for words in machine.said)


def test_a_disk_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"scratch: .*/b is missing"):
        Machine(tmp_path, {"a": ""}).make(["a", "b"], **STRIPE)


def test_a_program_that_the_next_boot_needs_is_missed_while_its_disks_are_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(tmp_path, {})
    machine.disks.WANTED = tmp_path / "disks.json"
    machine.disks.WANTED.write_text(json.dumps([{**STRIPE, "mount": "/proc", "encrypted": False}]))
    monkeypatch.setenv("PATH", str(tmp_path))

    machine.disks.main("look")

    assert json.loads(capsys.readouterr().out) == {"lacking": [], "programs": ["mdadm", "mkfs.xfs"]}


def test_planned_scratch_space_is_told_whole() -> None:
    planned = scratch(disks=8, disk_gb=1000)
    assert planned

    assert Disks.of(planned).model_dump() == {
        **STRIPE, "count": 8, "model": "Amazon EC2 NVMe Instance Storage", "devices": (), "encrypted": False,
    }  # fmt: skip


class Gpus:
    """GPUs whose nvidia-smi remembers: by number the profiles, None while a GPU is not in MIG mode."""

    def __init__(self, cut: dict[int, list[str] | None]) -> None:
        self.mig, self.cut, self.said = program("mig"), cut, []
        self.mig.smi = self.smi
        self.mig.is_active = lambda name: name == "nvidia-dcgm"
        self.mig.systemctl = lambda verb, names, *_: self.said.append([verb, *names])

    def smi(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        if arguments[0].startswith("--query-gpu"):
            modes = {gpu: "Disabled" if found is None else "Enabled" for gpu, found in self.cut.items()}
            return "".join(f"{gpu}, {mode}, {mode}\n" for gpu, mode in modes.items())
        if arguments == ("-L",):
            return "".join(
                f"GPU {gpu}: NVIDIA A100 (UUID: GPU-{gpu})\n"
                + "".join(f"  MIG {name}     Device  {i}: (UUID: MIG-{i})\n" for i, name in enumerate(found or []))
                for gpu, found in self.cut.items()
            )
        self.said.append(list(arguments))
        gpu = int(arguments[arguments.index("-i") + 1])
        if "-mig" in arguments:
            self.cut[gpu] = [] if arguments[-1] == "1" else None
        elif "-cgi" in arguments:
            self.cut[gpu] = arguments[arguments.index("-cgi") + 1].split(",")
        return ""


HALVES = ["3g.20gb", "3g.20gb"]


def test_only_a_gpu_that_is_cut_otherwise_is_cut_anew_while_its_watchers_step_aside() -> None:
    gpus = Gpus({0: HALVES, 1: None, 2: ["7g.40gb"]})

    gpus.mig.apply(HALVES)

    assert gpus.cut == {0: HALVES, 1: HALVES, 2: HALVES}
    assert gpus.said[0] == ["stop", "nvidia-dcgm"]
    assert gpus.said[-1] == ["start", "nvidia-dcgm"]
    assert not any("0" in words[words.index("-i") + 1] for words in gpus.said if "-i" in words)


def test_what_is_as_asked_is_left_alone() -> None:
    gpus = Gpus({0: HALVES, 1: HALVES})

    gpus.mig.apply(HALVES)

    assert gpus.said == []


def test_no_slices_asked_makes_whole_gpus() -> None:
    gpus = Gpus({0: HALVES, 1: None})

    gpus.mig.apply([])

    assert gpus.cut == {0: None, 1: None}


def test_watchers_come_back_when_a_cut_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = Gpus({0: None})
    monkeypatch.setattr(gpus.mig, "cut", lambda gpu, layout: gpus.mig.sys.exit("MIG: GPU 0 waits for a reset"))

    with pytest.raises(SystemExit, match="waits for a reset"):
        gpus.mig.apply(HALVES)
    assert gpus.said == [["stop", "nvidia-dcgm"], ["start", "nvidia-dcgm"]]


@pytest.mark.parametrize(
    ("file", "lacks"),
    [("# EFA installer version: 1.50.0\n", False), ("# EFA installer version: 1.49.0\n", True), (None, True)],
)
def test_an_installer_has_run_if_its_proof_says_this_version(tmp_path: Path, file: str | None, *, lacks: bool) -> None:
    proof, pattern = tmp_path / "proof", f"{tmp_path}/**/libnccl-net*.so"
    if file:
        proof.write_text(file)
    command = [
        sys.executable,
        ROLES / "locked_archive/files/query_archive.py",
        proof,
        "# EFA installer version: 1.50.0",
        pattern,
    ]

    answer = subprocess.run(command, capture_output=True, text=True, check=True)

    assert answer.stdout.splitlines() == [*([str(proof)] if lacks else []), pattern]
