"""Who may speak to whom: exactly these rules, and SSH never to the world."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.plan.firewall import FirewallRule, Network, OpenToTheWorldError, access, outbound, refuse_the_world

OFFICE = IPv4Network("203.0.113.0/24")
VPN = IPv6Network("2001:db8::/48")


def rules_of(**changes: object) -> tuple[FirewallRule, ...]:
    asked: dict[str, object] = {"ssh_from": [OFFICE], "head": "head", "nodes": ["trainer"], "fabric": ["trainer"]}
    return access(**{**asked, **changes})  # pyright: ignore[reportArgumentType]


def row(rule: FirewallRule) -> tuple[str, str, str, int | None, str | None]:
    return rule.group, rule.direction, rule.protocol, rule.port, rule.peer_group or rule.peer_cidr


def test_a_cluster_has_these_rules_and_no_other() -> None:
    assert [row(rule) for rule in rules_of()] == [
        ("head", "ingress", "tcp", 22, "203.0.113.0/24"),
        ("head", "egress", "tcp", 22, "trainer"),
        ("trainer", "ingress", "tcp", 22, "head"),
        ("trainer", "ingress", "-1", None, "trainer"),
        ("trainer", "egress", "-1", None, "trainer"),
    ]


def test_nodes_behind_a_head_are_not_reached_from_outside() -> None:
    assert not any(rule.peer_cidr for rule in rules_of() if rule.group == "trainer")


def test_without_a_head_people_log_in_to_the_nodes() -> None:
    rules = rules_of(head=None, fabric=[])

    assert [row(rule) for rule in rules] == [("trainer", "ingress", "tcp", 22, "203.0.113.0/24")]


def test_without_networks_nobody_logs_in_from_outside() -> None:
    assert not any(rule.peer_cidr for rule in rules_of(ssh_from=[]))


def test_a_fabric_group_speaks_to_itself_both_ways_and_to_no_other_group() -> None:
    rules = rules_of(nodes=["a", "b", "c"], fabric=["a", "b"])

    free = [(rule.group, rule.direction, rule.peer_group) for rule in rules if rule.protocol == "-1"]
    assert free == [("a", "ingress", "a"), ("a", "egress", "a"), ("b", "ingress", "b"), ("b", "egress", "b")]


def test_a_network_that_is_named_twice_is_one_rule() -> None:
    rules = rules_of(ssh_from=[OFFICE, VPN, OFFICE])

    assert [rule.peer_cidr for rule in rules if rule.peer_cidr] == ["203.0.113.0/24", "2001:db8::/48"]


def test_outbound_is_web_traffic_only() -> None:
    assert [row(rule) for rule in outbound(["trainer"])] == [
        ("trainer", "egress", "tcp", 80, "0.0.0.0/0"),
        ("trainer", "egress", "tcp", 443, "0.0.0.0/0"),
    ]


@pytest.mark.parametrize(
    "cidrs",
    [
        ["0.0.0.0/0"],
        ["::/0"],
        ["203.0.113.0/24", "0.0.0.0/0"],
        ["0.0.0.0/1", "128.0.0.0/1"],
        ["::/1", "8000::/1"],
        ["128.0.0.0/1"],
        ["2000::/3"],
        [f"{first}.0.0.0/8" for first in range(256)],
        ["0.0.0.0/2", "64.0.0.0/2", "203.0.113.0/24", "128.0.0.0/2", "192.0.0.0/2"],
    ],
)
def test_ssh_from_the_world_is_refused_in_every_form(cidrs: list[str]) -> None:
    with pytest.raises(OpenToTheWorldError):
        rules_of(ssh_from=[ip_network(cidr) for cidr in cidrs])


@given(st.integers(0, 2**32 - 1), st.randoms())
def test_the_world_but_one_address_is_refused(spared: int, random: Random) -> None:
    world: list[Network] = list(IPv4Network("0.0.0.0/0").address_exclude(IPv4Network((spared, 32))))
    random.shuffle(world)

    with pytest.raises(OpenToTheWorldError):
        refuse_the_world(world)


@pytest.mark.parametrize("cidr", ["10.0.0.0/8", "203.0.113.7/32", "fd00::/8", "2001:db8::1/128"])
def test_a_network_that_somebody_owns_is_allowed(cidr: str) -> None:
    refuse_the_world([ip_network(cidr)])


def test_ssh_is_open_to_no_world_and_every_rule_has_one_peer() -> None:
    rules = (*rules_of(), *outbound(["head", "trainer"]))

    assert not any(rule.port in (22, None) and rule.peer_cidr in ("0.0.0.0/0", "::/0") for rule in rules)
    assert all((rule.peer_cidr is None) != (rule.peer_group is None) for rule in rules)


def test_every_rule_says_why_in_words_that_aws_accepts() -> None:
    for rule in (*rules_of(), *outbound(["head", "trainer"])):
        assert re.fullmatch(r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,255}", rule.reason)
