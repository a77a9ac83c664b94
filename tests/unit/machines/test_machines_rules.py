"""Every rule of own machines has a stack that it refuses; the shipped stack is refused by none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from own_machines import HEAD, TRAINER, Project, shipped

from infra.checks import every
from infra.clouds.machines.plan import MachinesPlan

Change = Callable[[dict[str, Any]], object]


def no_store(cluster: dict[str, Any]) -> None:
    del cluster["nodes"][HEAD]


def with_control(address: str) -> Change:
    def change(cluster: dict[str, Any]) -> None:
        no_store(cluster)
        cluster["access"]["control"] = address

    return change


def trainer(**changed: Any) -> Change:
    return lambda cluster: cluster["nodes"][TRAINER].update(changed)


def fabric(**changed: Any) -> Change:
    return lambda cluster: cluster["nodes"][TRAINER]["fabric"].update(changed)


def host(position: int, **changed: Any) -> Change:
    return lambda cluster: cluster["nodes"][TRAINER]["hosts"][position].update(changed)


def key(text: str) -> Change:
    return fabric(partition={"key": text, "index": 1})


def ssh_from(*networks: str) -> Change:
    return lambda cluster: cluster["access"].update(ssh_from=list(networks))


def filtered_without_root(cluster: dict[str, Any]) -> None:
    ssh_from("10.60.0.0/16")(cluster)
    cluster["nodes"][HEAD]["hosts"][0]["prefix"] = "/home/ops/node"


def disks(*mounts: str) -> Change:
    return trainer(
        disks=[{"name": f"d{i}", "mount": mount, "devices": [f"/dev/nvme{i}n1"]} for i, mount in enumerate(mounts)]
    )


def disks_without_root(cluster: dict[str, Any]) -> None:
    cluster["nodes"][HEAD]["disks"] = [{"name": "runs", "mount": "/runs", "devices": ["/dev/sdb"]}]
    cluster["nodes"][HEAD]["hosts"][0]["prefix"] = "/home/ops/node"


CASES: dict[str, tuple[Change, str, str]] = {
    "no store": (no_store, "rendezvous-has-a-place", "cluster.access.control"),
    "public control": (with_control("8.8.8.8"), "rendezvous-is-private", "cluster.access.control"),
    "public head": (
        lambda cluster: cluster["nodes"][HEAD]["hosts"][0].update(address="8.8.8.8"),
        "rendezvous-is-private",
        "cluster.nodes",
    ),
    "head with GPUs": (
        lambda cluster: cluster["nodes"][HEAD].update(gpu="H100-SXM5-80GB", gpus=8),
        "head-is-one-host-without-gpus",
        "cluster.nodes[0].name",
    ),
    "limited member": (key("0x0012"), "partition-members-can-talk", "cluster.nodes[1].fabric.partition.key"),
    "no partition": (key("0x8000"), "partition-members-can-talk", "cluster.nodes[1].fabric.partition.key"),
    "three rails": (
        fabric(hcas=["mlx5_0", "mlx5_1", "mlx5_2"]),
        "every-gpu-has-its-rail",
        "cluster.nodes[1].fabric.hcas",
    ),
    "no fabric": (trainer(fabric=None), "gpus-of-hosts-are-joined", "cluster.nodes[1].fabric"),
    "one rack untold": (host(0, rack=None), "racks-are-told-of-all", "cluster.nodes[1].hosts"),
    "GPUs without root": (host(0, prefix="/home/ops/node"), "gpus-need-the-whole-host", "cluster.nodes[1].hosts"),
    "SSH from everywhere": (ssh_from("0.0.0.0/0"), "hosts-are-not-open-to-the-world", "cluster.access.ssh_from"),
    "a filter without root": (filtered_without_root, "filtered-hosts-are-whole-ones", "cluster.access.ssh_from"),
    "disks without root": (disks_without_root, "disks-need-the-whole-host", "cluster.nodes[0].disks"),
    "disks over a system folder": (
        disks("/var/lib"),
        "disks-have-a-folder-of-their-own",
        "cluster.nodes[1].disks[0].mount",
    ),
    "disks over a shared folder": (
        disks("/data/fast"),
        "disks-have-a-folder-of-their-own",
        "cluster.nodes[1].disks[0].mount",
    ),
    "disks over disks": (
        disks("/fast", "/fast"),
        "disks-have-a-folder-of-their-own",
        "cluster.nodes[1].disks[1].mount",
    ),
    "GPUs beside arm64 alone": (trainer(gpu="GB200"), "own-gpus-have-locked-drivers", "cluster.nodes[1].gpu"),
    "Volta": (trainer(gpu="V100-SXM2-32GB"), "own-gpus-have-locked-drivers", "cluster.nodes[1].gpu"),
}


def test_the_shipped_stack_has_no_findings(machines: Project) -> None:
    assert machines.findings(shipped()) == []


@pytest.mark.parametrize("case", CASES)
def test_a_stack_that_cannot_work_is_told_by_its_rule(machines: Project, case: str) -> None:
    change, rule, path = CASES[case]
    cluster = shipped()
    change(cluster)

    assert (rule, path) in {(name, place) for _, name, place in machines.findings(cluster)}


def test_every_rule_of_own_machines_has_a_case() -> None:
    named = {rule for _, rule, _ in CASES.values()}

    assert {rule.name for rule in every().values() if rule.kind is MachinesPlan} == named


def test_warnings_do_not_refuse(machines: Project) -> None:
    cluster = shipped()
    trainer(fabric=None)(cluster)

    assert machines.plan(cluster).errors == ()
