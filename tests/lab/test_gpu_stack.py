"""A bare machine with eight A100s becomes a GPU node, and stays one. What it says when it is none: test_gpu_faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import GpuMachine, Hardware, lacking, running
from ssh_hosts import Played

from infra.clouds.local.site import MACHINE_USER

pytestmark = pytest.mark.timeout(900)

DRIVER = "580.178.04"
A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuMachine]:
    folder = tmp_path_factory.mktemp("g")
    if reason := lacking(folder):
        pytest.skip(reason)
    with running(folder, A100) as found:
        yield found


@pytest.fixture(scope="module")
def first(node: GpuMachine) -> Played:
    """The machine's first run."""
    return node.play()


def test_a_bare_machine_becomes_a_gpu_node(node: GpuMachine, first: Played) -> None:
    assert first.code == 0, first.output
    details = {check["name"]: check["detail"] for check in node.ready["checks"]}
    assert details["versions"] == f"{DRIVER} open: on disk, loaded, library, fabric manager"
    assert details["gpus"] == "8 of compute capability 8.0"
    assert details["dcgm"] == "4.6.0, level 1 passed"
    assert node.ready["ready"]


def test_its_parameters_are_in_the_kernel_and_its_files_are_roots_but_for_those_of_jobs(
    node: GpuMachine, first: Played
) -> None:
    set_ = node.run("cat /etc/sysctl.d/90-gpufleet.conf /proc/sys/net/ipv4/tcp_mtu_probing")
    owners = node.run("stat -c %U /etc/gpufleet/node.json /var/lib/gpufleet")

    assert set_.endswith("= 1\n1")
    assert owners.split() == ["root", MACHINE_USER]


def test_every_package_of_the_driver_is_of_one_version_and_held(node: GpuMachine, first: Played) -> None:
    listed = node.run('dpkg-query -W -f "\\${Package} \\${Version} \\${db:Status-Want}\\n" "*nvidia*" nvlsm | sort')
    rows = [line.split() for line in listed.splitlines() if line.endswith((" hold", " install"))]

    assert {row[2] for row in rows} == {"hold"}
    assert {row[1] for row in rows if "container" not in row[0]} == {f"{DRIVER}-1"}


def test_a_second_run_changes_nothing(node: GpuMachine, first: Played) -> None:
    second = node.play()

    assert (second.code, second.changed) == (0, 0), second.output
