"""Names, numbers and keys of tenants: what is none is refused, with the variable that says it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

LOOK = Path(__file__).parents[3] / "playbooks/roles/tenants/files/query_logins.py"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBIF4QntJLFwctl5eMdUXsB7n4Cd6abvx+FLe3oHnUCi"
EVE: dict[str, Any] = {
    "name": "eve-of-the-lab",
    "uid": 54321,
    "public_keys": [KEY, f"{KEY} eve@home"],
    "gpus": [0],
    "cpu_percent": 100,
    "memory_gib": 1,
}


def problems(*tenants: dict[str, Any], shared: tuple[str, ...] = ()) -> list[str]:
    asked = json.dumps({"tenants": tenants, "mounts": shared})
    ran = subprocess.run([sys.executable, LOOK], input=asked, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)["problems"]


def test_a_tenant_that_nobody_is_yet_is_taken() -> None:
    assert problems(EVE, {**EVE, "name": "_2", "uid": "54322", "public_keys": []}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            ("name", name)
            for name in ("", "Eve", "-eve", "eve/x", "..", "eve\n", "e" * 32, "eve eve", "évé", "0", "{{ x }}")
        ),
        *(("uid", uid) for uid in (-1, 0, 999, 60000, 65534, 4294967295)),
        *(("gpus", [gpu]) for gpu in (-1,)),
        *((key, 0) for key in ("cpu_percent", "memory_gib", "tasks")),
        *(
            ("public_keys", [KEY, key])
            for key in (
                "",
                "x",
                f"{KEY}\n{KEY}",
                f'command="id" {KEY}',
                f"cert-authority {KEY}",
                f"{KEY} \x1b[2J",
                f"# {KEY}",
            )
        ),
    ],
)
def test_what_is_none_is_refused_with_its_variable(key: str, value: object) -> None:
    (problem,) = problems(EVE, {**EVE, "name": "ok", "uid": 54322, key: value})

    assert problem.startswith(f"tenants_wanted[1].{key}{'[' if isinstance(value, list) else ':'}")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"name": "root"}, "name: root is a login of this node that is no tenant of ours"),
        ({"name": "shadow"}, "name: shadow is a group of this node that is no tenant of ours"),
    ],
)
def test_a_name_that_the_node_has_is_somebody_elses(changed: dict[str, object], reason: str) -> None:
    assert problems({**EVE, **changed}) == [f"tenants_wanted[0].{reason}: choose another name"]


def test_two_tenants_are_not_one() -> None:
    assert problems(EVE, EVE) == [
        "tenants_wanted[1].name: eve-of-the-lab stands there twice",
        "tenants_wanted[1].uid: 54321 stands there twice",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root tries what another login sees")
def test_a_mount_that_every_login_reads_is_named_and_one_that_is_closed_is_not() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        modes = {"open": 0o755, "closed": 0o750, "jobs": 0o700}
        for name, mode in ((".", 0o755), *modes.items()):
            Path(folder, name).mkdir(exist_ok=True)
            Path(folder, name).chmod(mode)

        found = problems(EVE, shared=tuple(f"{folder}/{name}" for name in (*modes, "gone")))

    assert [problem.partition(": restart")[0] for problem in found] == [
        f"tenants_wanted: every login of the node reads {folder}/open, {folder}/gone"
    ]
