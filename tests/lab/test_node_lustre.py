"""A machine mounts FSx for Lustre with the client built for its kernel, for jobs to write to, and a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import installers
import pytest
from gpu_machines import Boot, GpuMachine, Hardware
from ssh_hosts import Played

from infra.handover import Storage

pytestmark = pytest.mark.drill

FILES = Storage(
    name="files",
    path="/files",
    kind="lustre",
    source="fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh",
    client="lustre",
    options=("relatime", "flock"),
)
BUCKET = Storage(name="data", path="/data", kind="bucket", source="a", client="mountpoint")
HEAD = Hardware(model="t4", gpu="T4", count=0, distribution="ubuntu2404", storage=(FILES, BUCKET))


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(HEAD) as (found,):
        found.run("mkdir -p /var/lib/standin/content/abcdefgh")
        played = play(found)
        assert played.code == 0, played.output
        yield found


def play(node: GpuMachine, **settings: Any) -> Played:
    sha256 = installers.write(node.repositories / "installers", "mountpoint", "1.24.0")
    return node.play(mounts_mountpoint_sha256=sha256, **settings)


def test_it_is_mounted_with_its_options_and_jobs_may_write(node: GpuMachine) -> None:
    node.run("mountpoint --quiet /files && mountpoint --quiet /data")

    assert "relatime,flock" in (node.root / "var/lib/standin/content/abcdefgh.options").read_text()
    assert node.run("stat -c %U /files") == "gpufleet-job"


def test_a_second_run_changes_nothing(node: GpuMachine) -> None:
    again = play(node)

    assert (again.code, again.changed) == (0, 0), again.output


def test_a_key_that_is_another_is_refused(node: GpuMachine) -> None:
    node.run("rm /usr/share/keyrings/gpufleet-lustre.gpg")

    refused = play(node, mounts_lustre_key="9C36DD9C515F10DBC3AA835C5D5CCC3383A962E1")

    assert refused.code != 0
    assert (
        "is not 9C36DD9C515F10DBC3AA835C5D5CCC3383A962E1: the mirror is wrong, or the key was rotated" in refused.output
    )
