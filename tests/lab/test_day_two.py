"""A node's later life, on a machine with eight A100s: driver up and down, drained, a new kernel, all taken away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gpu_machines import Boot, GpuMachine, Hardware
from nvidia_packages import NEXT_KERNEL

pytestmark = [pytest.mark.drill, pytest.mark.in_order]

A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12")
OLD, NOW, NEXT = "580.126.20", "580.178.04", "595.91.07"


def locked(node: GpuMachine, driver: str) -> dict[str, Any]:
    """The handover with another driver in its lock."""
    told = node.site.handover
    (group,) = told["groups"]
    lock = {**group["drivers"]["debian12"], "driver": driver, "fabric_manager": driver}
    return {**told, "groups": [{**group, "drivers": {"debian12": lock}}]}


def driver_of(node: GpuMachine) -> str:
    """What the node's own checks found on disk, loaded, and in library and fabric manager alike."""
    details = {check["name"]: check["detail"] for check in node.ready["checks"]}
    return details["versions"].split()[0] if node.ready["ready"] else "not ready"


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    """A node that was proven with the older driver."""
    with boot(A100) as (found,):
        played = found.play(handover=locked(found, OLD))
        assert played.code == 0, played.output
        yield found


def test_an_upgrade_moves_the_driver_and_reboots_into_it(node: GpuMachine) -> None:
    assert driver_of(node) == OLD
    boot = node.run("cat /proc/sys/kernel/random/boot_id; systemctl show --property=UserspaceTimestamp")

    played = node.play("upgrade.yml", handover=locked(node, NOW))

    assert played.code == 0, played.output
    assert driver_of(node) == NOW
    assert node.run("cat /proc/sys/kernel/random/boot_id; systemctl show --property=UserspaceTimestamp") != boot


def test_an_upgrade_leaves_a_node_at_work_that_has_it_all(node: GpuMachine) -> None:
    job = int(node.run("sleep 600 > /dev/null 2>&1 & echo $!"))
    node.computes(job)

    again = node.play("upgrade.yml", handover=locked(node, NOW))
    at_work = node.run(f"kill {job} && echo yes", fails=True)
    node.computes()

    assert (again.code, again.changed) == (0, 0), again.output
    assert at_work == "yes"
    assert driver_of(node) == NOW


def test_a_node_that_was_sick_before_is_moved_all_the_same(node: GpuMachine) -> None:
    node.breaks("ecc.mode.current:4")

    played = node.play("upgrade.yml", handover=locked(node, NEXT))
    reasons, loaded = node.reasons, node.run("cat /proc/driver/nvidia/version")
    node.breaks()
    back = node.play("upgrade.yml", handover=locked(node, NOW))

    assert played.code != 0
    assert "taken back" not in played.output
    assert list(reasons) == ["gpu_memory"]
    assert NEXT in loaded
    assert back.code == 0, back.output
    assert driver_of(node) == NOW


def test_a_driver_that_does_not_prove_itself_is_taken_back(node: GpuMachine) -> None:
    node.breaks(f"bad-driver:{NEXT}")

    played = node.play("upgrade.yml", handover=locked(node, NEXT))

    assert played.code != 0
    assert f"upgrade: taken back to {NOW}, since: not ready" in played.output
    assert driver_of(node) == NOW


def test_a_rollback_goes_to_what_the_node_was_proven_with_before(node: GpuMachine) -> None:
    """That is NEXT: mended, and before it went back to NOW, the node proved itself with it."""
    node.breaks()
    back = node.play("rollback.yml", handover=locked(node, NOW))
    found = driver_of(node)
    again = node.play(handover=locked(node, NOW))

    assert back.code == 0, back.output
    assert found == NEXT
    assert again.code == 0, again.output


def test_a_job_is_asked_to_leave_before_the_node_is_changed(node: GpuMachine) -> None:
    job = int(node.run("sleep 600 > /dev/null 2>&1 & echo $!"))
    node.computes(job)

    drained = node.play("drain.yml")
    node.computes()

    assert drained.code == 0, drained.output
    assert node.run(f"test -e /proc/{job} || echo gone") == "gone"
    assert node.reasons == {"drained": "it was drained: verify.yml takes it back"}


def test_a_job_that_does_not_leave_keeps_the_node_as_it_is(node: GpuMachine) -> None:
    job = int(node.run('nohup sh -c "trap : TERM; while :; do sleep 1; done" > /dev/null 2>&1 & echo $!'))
    node.computes(job)

    refused = node.play("upgrade.yml", handover=locked(node, NEXT), drain_seconds=3)
    taken = node.play("reset.yml", reset_confirmed="gpus")
    node.run(f"kill -9 {job}")
    node.computes()

    assert f"process {job} still computes on a GPU after 3" in refused.output
    assert f"busy: process {job} computes on a GPU" in taken.output
    assert NOW in node.run("cat /proc/driver/nvidia/version")


def test_a_kernel_that_came_without_its_driver_gets_it_before_the_next_boot(node: GpuMachine) -> None:
    node.run(f"apt-get -qq -y install linux-image-{NEXT_KERNEL}")
    node.play("verify.yml")
    found = node.reasons

    healed = node.play()

    assert found["kernel"] == f"the next boot takes {NEXT_KERNEL}, whose driver is none, not {NOW}: run gpu_node.yml"
    assert healed.code == 0, healed.output
    assert node.run(f"modinfo -k {NEXT_KERNEL} -F version nvidia") == NOW


def test_a_reset_asks_first_then_leaves_only_the_keys_of_disks_and_what_runs_left(node: GpuMachine) -> None:
    checkpoint = "/var/lib/gpufleet/runs/first/checkpoint"
    node.run("mkdir /etc/gpufleet/keys && touch /etc/gpufleet/keys/kept")
    node.run(f"mkdir -p $(dirname {checkpoint}) && touch {checkpoint}")

    asked = node.play("reset.yml")
    gone, again = (node.play("reset.yml", reset_confirmed="gpus") for _ in range(2))
    left = node.run(
        'find /etc /opt /usr/local /usr/share/keyrings /var/lib -name "*gpufleet*" | sort; ls /etc/gpufleet/*'
    )
    data = node.run("find /var/lib/gpufleet -type f")
    installed = node.run('dpkg-query -W -f "\\${Package} \\${db:Status-Abbrev}\n" | grep "nvidia.* .i"', fails=True)
    back = node.play()

    assert "confirm it with -e reset_confirmed=gpus" in asked.output
    assert gone.code == 0, gone.output
    assert (again.code, again.changed) == (0, 0), again.output
    stay = ["/etc/gpufleet", "/etc/ssh/sshd_config.d/gpufleet.conf", "/var/lib/gpufleet", "kept"]
    assert (left.split(), data) == (stay, checkpoint), "a disk's key and a run's checkpoint must stay"
    assert installed == ""
    assert back.code == 0, back.output
