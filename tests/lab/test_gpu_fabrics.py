"""Machines with RDMA cards: the fabric's locked installer runs once, from an archive that is what its checksum says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine
from scenarios import SCENARIOS

pytestmark = pytest.mark.drill

FABRICS = [SCENARIOS["h100-efa"], SCENARIOS["ebmgn7ex-erdma"]]
LEFT = {"efa": "/opt/amazon/efa/bin/fi_info", "erdma": "/usr/bin/eadm"}


@pytest.fixture(scope="module", params=FABRICS, ids=lambda hardware: hardware.fabric)
def node(request: pytest.FixtureRequest, boot: Boot) -> Iterator[GpuMachine]:
    with boot(request.param) as (found,):
        played = found.play()
        assert played.code == 0, played.output
        yield found


def fabric(node: GpuMachine) -> str:
    return node.site.handover["groups"][0]["fabric"]


def test_the_installer_has_run_and_left_no_archive(node: GpuMachine) -> None:
    assert (node.root / LEFT[fabric(node)].lstrip("/")).exists()
    assert not list((node.root / "var/cache/gpufleet").iterdir())


def test_a_second_run_changes_nothing(node: GpuMachine) -> None:
    again = node.play()

    assert (again.code, again.changed) == (0, 0), again.output


def test_what_was_removed_by_hand_comes_back(node: GpuMachine) -> None:
    node.run(f"rm {LEFT[fabric(node)]}")

    healed = node.play()

    assert healed.code == 0, healed.output
    assert (node.root / LEFT[fabric(node)].lstrip("/")).exists()


def test_the_installer_does_not_run_under_a_job(node: GpuMachine) -> None:
    node.run(f"mv {LEFT[fabric(node)]} /root/aside")
    node.computes(1)

    refused = node.play()
    node.computes()
    node.run(f"mv /root/aside {LEFT[fabric(node)]}")

    assert "busy: process 1 computes on a GPU, and" in refused.output


def test_an_archive_that_is_another_is_not_unpacked(node: GpuMachine) -> None:
    node.run(f"mv {LEFT[fabric(node)]} /root/aside")
    (archive,) = (node.repositories / "installers").iterdir()
    right = archive.read_bytes()
    archive.write_bytes(right + b"x")

    refused = node.play()
    archive.write_bytes(right)
    node.run(f"mv /root/aside {LEFT[fabric(node)]}")

    assert refused.code != 0
    assert "checksum" in refused.output
