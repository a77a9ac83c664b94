"""Preflight rules: each with a decision that passes and one that fails, and all of them run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from projects import Project

from infra.checks import check, every
from infra.clouds.local.plan import LocalPlan
from infra.evaluate import decide, described
from infra.plan.model import CostItem

ONE = "nodes: [{name: a, count: 1}]"
PROCESS, MACHINE = f"cloud: local\nisolation: process\n{ONE}\n", f"cloud: local\nisolation: machine\n{ONE}\n"

# rule: (a cluster that it passes, a cluster that it refuses, the key that it names, words that it says)
CASES = {
    "process-nodes-are-on-loopback": (
        PROCESS + "network: {cidr: 127.9.0.0/16}",
        PROCESS + "network: {cidr: 10.9.0.0/16}",
        "cluster.network.cidr",
        "10.9.0.0/16 must lie in 127.0.0.0/8 for isolation process",
    ),
    "machine-network-is-private": (
        MACHINE + "network: {cidr: 172.31.0.0/16}",
        MACHINE + "network: {cidr: 172.32.0.0/16}",
        "cluster.network.cidr",
        "172.32.0.0/16 must lie in one of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16",
    ),
    "network-has-room": (
        PROCESS.replace("1}", "244}"),
        PROCESS.replace("1}", "245}"),
        "cluster.nodes[0].count",
        "127.0.0.0/24 has room for 244 of 245 nodes",
    ),
    "process-port-needs-no-root": (
        PROCESS + "network: {port: 1024}",
        PROCESS + "network: {port: 1023}",
        "cluster.network.port",
        "1023 needs root; for isolation process take one from 1024 on",
    ),
    "gateway-is-no-node": (
        MACHINE.replace("1}", "1, addresses: [10.213.0.2]}"),
        MACHINE.replace("1}", "1, addresses: [10.213.0.1]}"),
        "cluster.nodes[0].addresses[0]",
        "10.213.0.1 is this computer's own address",
    ),
    "group-names-are-free-in-the-inventory": (
        PROCESS.replace("1}", "1}, {name: a-2, count: 1}"),
        PROCESS.replace("1}", "1}, {name: a-1, count: 1}"),
        "cluster.nodes[1].name",
        "'a-1' is also a node's name",
    ),
    "mounts-do-not-overlap": (
        PROCESS + "storage: [{name: d, kind: folder, mount: /data}, {name: e, kind: folder, mount: /data2}]",
        PROCESS + "storage: [{name: d, kind: folder, mount: /data}, {name: e, kind: folder, mount: /data/2}]",
        "cluster.storage[1].mount",
        "/data/2 overlaps /data, the mount of d",
    ),
    "mounts-hide-no-system-folder": (
        PROCESS + "storage: [{name: d, kind: folder, mount: /srv/d}]",
        PROCESS + "storage: [{name: d, kind: folder, mount: /usr/share/d}]",
        "cluster.storage[0].mount",
        "/usr/share/d lies in the system's /usr",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_passes_what_is_right_and_refuses_what_is_not(project: Project, name: str) -> None:
    right, wrong, key, words = CASES[name]

    assert decide(project.load(right)).findings == ()
    (finding,) = decide(project.load(wrong)).errors
    assert (finding.rule, finding.path) == (name, key)
    assert words in finding.message


@pytest.mark.parametrize(
    ("hourly_max", "broken"),
    [(2.0, []), (2.1, ["cluster.budget.hourly"]), (9, ["cluster.budget.hourly", "cluster.budget.monthly"])],
)
def test_a_budget_limits_the_dearest_hour_and_the_month(project: Project, hourly_max: float, broken: list[str]) -> None:
    file = project.load(PROCESS + "budget: {hourly: 2, monthly: 2000}")
    plan = decide(file)
    item = CostItem(name="a", quantity=1, hourly=1.0, source="a test")

    dear = replace(plan, cost=replace(plan.cost, hourly=1.0, hourly_max=hourly_max, items=(item,)))

    assert [finding.path for finding in check(file.spec, dear)] == broken


def test_a_budget_of_nothing_is_enough_for_this_computer(project: Project) -> None:
    assert decide(project.load(PROCESS + "budget: {hourly: 0, monthly: 0}")).findings == ()


@pytest.mark.parametrize("name", ["all", "ungrouped", "ready"])
def test_a_group_cannot_have_a_name_that_every_inventory_has(project: Project, name: str) -> None:
    (finding,) = decide(project.load(PROCESS.replace("name: a", f"name: {name}"))).errors

    assert finding.message == f"'{name}' is a group that every inventory has already"


@pytest.mark.parametrize("mount", ["/home", "/home/ubuntu", "/opt", "/opt/gpufleet"])
def test_a_mount_hides_neither_the_keys_of_logins_nor_the_nodes_own_programs(project: Project, mount: str) -> None:
    hiding = f"storage: [{{name: d, kind: folder, mount: {mount}}}]"

    assert [each.rule for each in decide(project.load(PROCESS + hiding)).errors] == ["mounts-hide-no-system-folder"]


def test_two_storages_cannot_have_one_mount(project: Project) -> None:
    twice = "storage: [{name: d, kind: folder, mount: /data}, {name: e, kind: folder, mount: /data}]"

    assert [finding.rule for finding in decide(project.load(PROCESS + twice)).errors] == ["mounts-do-not-overlap"]


def test_one_run_reports_every_failure(project: Project) -> None:
    plan = decide(project.load(PROCESS.replace("1}", "999}") + "network: {cidr: 10.0.0.0/24, port: 22}"))

    assert {finding.rule for finding in plan.errors} == {
        "process-nodes-are-on-loopback",
        "network-has-room",
        "process-port-needs-no-root",
    }


def test_a_finding_is_one_line_with_file_and_line(project: Project) -> None:
    file = project.load(PROCESS + "network: {port: 80}")
    (finding,) = decide(file).errors

    assert described(finding, file) == (
        "stacks/Pulumi.x.yaml:6 cluster.network.port: 80 needs root; for isolation process take one from 1024 on"
        " [process-port-needs-no-root]"
    )


def test_every_rule_has_its_cases() -> None:
    of_this_computer = {name for name, rule in every().items() if issubclass(LocalPlan, rule.kind)}

    about_gpus = {name for name in every() if name.startswith("mig-")}  # their cases: tests/unit/aws

    about_charts = {"charts-are-known-by-digest", "strict-charts-are-known-by-digest"}  # its cases: tests/unit/tenants

    assert of_this_computer == {*CASES, "budget-holds", *about_gpus, *about_charts}
