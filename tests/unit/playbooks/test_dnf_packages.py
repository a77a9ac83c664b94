"""Packages of dnf's distributions: what an installed one is compared with, and which transactions are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = Path(__file__).parents[3] / "playbooks/roles/locked_packages/files"
NAMES = '["nvidia-.*", "kmod-nvidia-.*"]'
KERNEL = "kernel-devel-5.14.0-687.51.1.el9_8.x86_64"
# dnf's library, as far as a rehearsal asks it. What a transaction would do stands in a file.
DNF = """
import json, os
from types import SimpleNamespace as Some

class Package(Some):
    downloadsize, installsize = 1, int(os.environ.get("SIZE", "1"))
    __hash__ = object.__hash__
    __str__ = lambda self: f"{self.name}-3:580.178.04-1.el9.x86_64"

class exceptions:
    class Error(Exception): pass

class Base:
    conf = Some(read=lambda: None, cachedir="/usr", substitutions=Some(update_from_etc=lambda root: None))
    sack = Some(query=lambda: Some(available=lambda: Some(filter=lambda name, version: [])))
    __enter__ = lambda self: self
    __exit__ = lambda self, *error: None
    read_all_repos = fill_sack_from_repos_in_cache = lambda self: None
    remove = lambda self, name: None
    def install(self, spec):
        if spec.startswith("unknown"):
            raise exceptions.Error(f"No match for argument: {spec}")
    def resolve(self, allow_erasing):
        come, go = json.loads(os.environ["TRANSACTION"])
        self.transaction = Some(install_set=[Package(name=n) for n in come], remove_set=[Package(name=n) for n in go])
"""


def said(program: str, folder: Path, *arguments: str, tools: dict[str, str], **environment: str) -> dict[str, Any]:
    """The answer of a node's program, with these tools in the place of the node's own."""
    for name, text in tools.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    where = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(folder), **environment}
    command = [sys.executable, str(FILES / program), *arguments]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=where)
    return json.loads(told.stdout)


def installed(folder: Path, wanted: dict[str, str], *packages: str) -> dict[str, list[str]]:
    """packages: `name version-release architecture`."""
    listing = "\\n".join(package.replace(" ", "\\t") for package in packages)
    arguments = ("dnf", json.dumps(wanted), "[]", NAMES, '"580.178.04"')
    return said("query_packages.py", folder, *arguments, tools={"rpm": f"printf '{listing}\\n'"})


def test_versions_are_compared_without_epochs_and_what_is_of_another_driver_is_found(tmp_path: Path) -> None:
    told = installed(
        tmp_path,
        {"nvidia-driver-cuda": "580.178.04-*", "nvidia-modprobe": "580.178.04-*"},
        "nvidia-driver-cuda 580.178.04-1.el9 x86_64",
        "kmod-nvidia-open-dkms 595.91.07-1.el9 noarch",
    )

    assert told["lacking"] == ["nvidia-modprobe"]
    assert told["astray"] == ["kmod-nvidia-open-dkms"]
    assert told["loose"] == []


def test_headers_of_several_kernels_go_by_their_whole_names(tmp_path: Path) -> None:
    wanted = {KERNEL: "*", "kernel-devel-5.14.0-700.el9.x86_64": "*"}

    told = installed(
        tmp_path, wanted, "kernel-devel 5.14.0-687.51.1.el9_8 x86_64", "kernel-devel 5.14.0-600.el9 x86_64"
    )

    assert told["lacking"] == ["kernel-devel-5.14.0-700.el9.x86_64"]


def rehearsed(folder: Path, come: list[str], go: list[str], wanted: str = "nvidia-modprobe", **more: str) -> Any:
    (folder / "dnf.py").write_text(DNF)
    arguments = (json.dumps({wanted: "580.178.04-*"}), "[]", NAMES, '"580.178.04"')
    environment = {"TRANSACTION": json.dumps([come, go]), **more}
    return said("rehearse_dnf.py", folder, *arguments, tools={"dnf": "true"}, **environment)


def test_what_the_lock_rules_may_come_and_go(tmp_path: Path) -> None:
    plan = rehearsed(tmp_path, ["nvidia-modprobe"], ["nvidia-modprobe", "nvidia-old"])

    assert plan["problems"] == []
    assert plan["install"] == ["nvidia-modprobe-3:580.178.04-1.el9.x86_64"]
    assert plan["moves"] == ["nvidia-modprobe", "nvidia-old"]


@pytest.mark.parametrize(
    ("come", "go", "reason"),
    [
        (["kernel-core"], [], "kernel-core would be installed, and the node boot into a kernel without its driver"),
        (["kernel6.12"], [], "kernel6.12 would be installed"),
        (["nvidia-modprobe"], ["openssh-server"], "openssh-server would be removed"),
    ],
)
def test_a_transaction_that_does_more_is_refused(tmp_path: Path, come: list[str], go: list[str], reason: str) -> None:
    assert reason in str(rehearsed(tmp_path, come, go)["problems"])


def test_the_headers_of_a_kernel_are_no_kernel(tmp_path: Path) -> None:
    assert rehearsed(tmp_path, ["kernel-devel", "kernel-headers"], [])["problems"] == []


def test_packages_that_do_not_fit_are_named_with_the_place(tmp_path: Path) -> None:
    plan = rehearsed(tmp_path, ["nvidia-modprobe"], [], SIZE=str(10**16))

    assert "MiB are free at /usr: free some" in str(plan["problems"])


def test_what_dnf_refuses_is_told_in_its_own_words(tmp_path: Path) -> None:
    plan = rehearsed(tmp_path, [], [], wanted="unknown")

    assert plan["problems"] == ["No match for argument: unknown-580.178.04-*"]
