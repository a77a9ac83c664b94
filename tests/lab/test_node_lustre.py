"""A machine mounts a file system of FSx for Lustre with the client built for its kernel, for jobs to write to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

from infra.clouds.local.site import MACHINE_USER
from infra.handover import Storage

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1800)]

FILES = Storage(
    name="files",
    path="/files",
    kind="lustre",
    source="fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh",
    client="lustre",
    options=("relatime", "flock"),
)
HEAD = Hardware(model="t4", gpu="T4", count=0, distribution="ubuntu2404", storage=(FILES,))


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(HEAD) as (found,):
        found.run("mkdir -p /var/lib/standin/content/abcdefgh")
        played = found.play()
        assert played.code == 0, played.output
        yield found


def test_it_is_mounted_with_its_options_and_jobs_may_write(node: GpuMachine) -> None:
    node.run("mountpoint --quiet /files")

    assert "relatime,flock" in (node.root / "var/lib/standin/content/abcdefgh.options").read_text()
    assert node.run("stat -c %U /files") == MACHINE_USER


def test_a_second_run_changes_nothing(node: GpuMachine) -> None:
    again = node.play()

    assert (again.code, again.changed) == (0, 0), again.output


def test_a_key_that_is_another_is_refused(node: GpuMachine) -> None:
    node.run("rm /usr/share/keyrings/gpufleet-lustre.gpg")

    refused = node.play(mounts_lustre_key="9C36DD9C515F10DBC3AA835C5D5CCC3383A962E1")

    assert refused.code != 0
    assert (
        "is not 9C36DD9C515F10DBC3AA835C5D5CCC3383A962E1: the mirror is wrong, or the key was rotated" in refused.output
    )
