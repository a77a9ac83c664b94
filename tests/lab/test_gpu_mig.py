"""GPUs that are cut into slices: once, again at every boot, never under a job, and whole again when nobody asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine
from scenarios import SCENARIOS

pytestmark = pytest.mark.drill

CUT = SCENARIOS["mig"]


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(CUT) as (found,):
        played = found.play()
        assert played.code == 0, played.output
        yield found


def cut(node: GpuMachine) -> list[str]:
    """The profiles of every slice on the node."""
    lines = (line.split() for line in node.run("nvidia-smi -L").splitlines())
    return [words[1] for words in lines if words[0] == "MIG"]


def named(node: GpuMachine) -> list[str]:
    """What containers are given by name: of /var/run/cdi before /etc/cdi (the Go package `cdi`, "Spec Directories")."""
    text = node.run("cat /var/run/cdi/nvidia.yaml || cat /etc/cdi/nvidia.yaml")
    return [line.split("'")[1] for line in text.splitlines() if "name:" in line]


def test_every_gpu_has_the_slices_that_were_asked(node: GpuMachine) -> None:
    assert sorted(cut(node)) == sorted(CUT.mig * 2)
    assert named(node) == ["0:0", "0:1", "0:2", "1:0", "1:1", "1:2"]


def test_a_second_run_changes_nothing(node: GpuMachine) -> None:
    again = node.play()

    assert (again.code, again.changed) == (0, 0), again.output


def test_slices_come_back_with_the_next_boot(node: GpuMachine) -> None:
    node.run("rm /run/standin/mig.json; systemctl restart gpufleet-mig")

    assert sorted(cut(node)) == sorted(CUT.mig * 2)


def test_only_the_gpu_that_is_cut_otherwise_is_cut_anew_and_never_under_a_job(node: GpuMachine) -> None:
    node.run("nvidia-smi mig -i 1 -dgi")
    node.computes(1)

    refused = node.play()
    node.computes()
    healed = node.play()

    assert "process 1 computes on a GPU, and GPU 1 must be cut into 4g.40gb, 2g.20gb, 1g.10gb" in refused.output
    assert healed.code == 0, healed.output
    assert sorted(cut(node)) == sorted(CUT.mig * 2)
    assert node.run("systemctl is-active nvidia-dcgm nvidia-dcgm-exporter").split() == ["active", "active"]


def test_gpus_are_whole_again_when_the_stack_asks_for_no_slices(node: GpuMachine) -> None:
    told = node.site.handover
    whole = [{**group, "mig": []} for group in told["groups"]]

    played = node.play(handover={**told, "groups": whole})

    assert played.code == 0, played.output
    assert cut(node) == []
    assert named(node) == ["0", "1"]
