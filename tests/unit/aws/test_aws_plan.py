"""The decision for AWS: everything that is declared, from the stack file and the tables alone."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

import pytest
from clusters import BUCKET, HEAD, KEY, LUSTRE, REPOSITORY, SSH, Project, group, with_head

from infra.catalog import load as tables
from infra.clouds.aws.plan.capacity import Single
from infra.clouds.aws.plan.model import AwsPlan
from infra.plan.cloud_model import BucketPlan

EFA_TYPES: dict[str, dict[str, Any]] = json.loads((REPOSITORY / "tests/unit/plan/efa_types.json").read_text())


def rules_of(plan: AwsPlan) -> set[tuple[str, str, str, int | None, str | None]]:
    return {
        (rule.group, rule.direction, rule.protocol, rule.port, rule.peer_group or rule.peer_cidr)
        for rule in plan.network.rules
    }


@pytest.mark.parametrize("name", EFA_TYPES)
def test_every_efa_type_of_the_tables_gets_its_cards(aws: Project, name: str) -> None:
    (found,) = aws.plan(nodes=group(type=name)).groups

    planned = [[each.network_card_index, each.interface_type] for each in found.interfaces]
    assert planned == EFA_TYPES[name]["interfaces"]
    assert found.fabric == "efa"


def test_the_tables_hold_every_efa_type_and_the_plan_knows_each() -> None:
    known = {kind.name for kind in tables().types if kind.fabric == "efa" and kind.fabric_on_first_card is not None}

    assert known == set(EFA_TYPES)


def test_a_thousand_nodes_are_a_plan_of_the_same_size_as_four(aws: Project) -> None:
    few, many = (aws.plan(nodes=group(count=count), network="{cidr: 10.40.0.0/16}") for count in (4, 1000))

    assert shape(few.to_json()) == shape(many.to_json())
    assert not many.errors


def shape(value: object) -> object:
    """Which keys there are, and how many of each: no value."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else None


def test_the_same_file_is_always_the_same_plan_and_plain_json(aws: Project) -> None:
    first, again = aws.plan(storage=f"[{BUCKET}, {LUSTRE}]"), aws.plan(storage=f"[{BUCKET}, {LUSTRE}]")

    assert first == again
    assert json.loads(json.dumps(first.to_json())) == first.to_json()


def test_subnets_lie_in_the_network_apart_and_only_public_ones_have_no_nat(aws: Project) -> None:
    plan = aws.plan(zone=None, zones="[us-east-1a, us-east-1b]", nodes=group(fabric="none"))

    cidrs = [IPv4Network(subnet.cidr) for subnet in plan.network.subnets]
    assert all(cidr.subnet_of(IPv4Network("10.40.0.0/16")) for cidr in cidrs)
    assert not any(one.overlaps(other) for one, other in combinations(cidrs, 2))
    assert [(subnet.name, subnet.nat) for subnet in plan.network.subnets] == [
        ("public-us-east-1a", None),
        ("private-us-east-1a", "public-us-east-1a"),
        ("public-us-east-1b", None),
        ("private-us-east-1b", "public-us-east-1b"),
    ]
    assert plan.network.nat == ("public-us-east-1a", "public-us-east-1b")


@pytest.mark.parametrize("storage", ["[]", f"[{BUCKET}, {LUSTRE}]"])
@pytest.mark.parametrize("nodes", [group(), with_head(), with_head(count=1000)])
def test_what_a_stack_adds_later_moves_no_subnet(aws: Project, storage: str, nodes: str) -> None:
    before = {subnet.name: subnet.cidr for subnet in aws.plan().network.subnets}

    after = {subnet.name: subnet.cidr for subnet in aws.plan(nodes=nodes, storage=storage).network.subnets}

    kept = before if "1000" not in nodes else {"public-us-east-1d": before["public-us-east-1d"]}
    assert kept.items() <= after.items()


def test_every_group_names_subnets_and_security_groups_that_there_are(aws: Project) -> None:
    plan = aws.plan(
        nodes=with_head(), access=SSH, storage=f"[{BUCKET}, {LUSTRE}]", network="{cidr: 10.40.0.0/16, internet: none}"
    )

    subnets = {subnet.name for subnet in plan.network.subnets}
    firewalls = set(plan.network.security_groups)
    assert all(set(each.subnets) <= subnets and each.security_group in firewalls for each in plan.groups)
    assert all(
        set(each.subnets) <= subnets and each.security_group in {None, *firewalls} for each in plan.network.endpoints
    )
    assert {each.group for each in plan.network.rules} | {each.peer_group for each in plan.network.rules} <= {
        None,
        *firewalls,
    }
    assert set(plan.network.nat) <= subnets


def test_a_zone_without_nodes_has_no_subnet_and_no_gateway(aws: Project) -> None:
    network = aws.plan(zone=None, zones="[us-east-1a, us-east-1b]", nodes=group(zone="us-east-1b")).network

    assert {subnet.zone for subnet in network.subnets} == {"us-east-1b"}
    assert network.nat == ("public-us-east-1b",)


@pytest.mark.parametrize("access", [SSH, "{ssm: true}"])
def test_no_rule_stands_twice(aws: Project, access: str) -> None:
    nodes = with_head()[:-1] + ", " + group(name="b", type="g6.xlarge", count=2)[1:]
    plan = aws.plan(nodes=nodes, access=access, storage=f"[{BUCKET}, {LUSTRE}]")

    assert len(rules_of(plan)) == len(plan.network.rules)


def test_people_reach_the_head_alone_and_nodes_through_it(aws: Project) -> None:
    plan = aws.plan(nodes=with_head(), access=SSH)

    assert rules_of(plan) == {
        ("head", "ingress", "tcp", 22, "203.0.113.0/24"),
        ("head", "egress", "tcp", 22, "a"),
        ("a", "ingress", "tcp", 22, "head"),
        ("a", "ingress", "-1", None, "a"),
        ("a", "egress", "-1", None, "a"),
        *((name, "egress", "tcp", port, "0.0.0.0/0") for name in ("head", "a") for port in (80, 443)),
        ("a", "egress", "tcp", 29400, "head"),
        ("head", "ingress", "tcp", 29400, "a"),
    }
    head, trainer = plan.groups
    assert (head.subnets, head.public_address, head.capacity) == (("public-us-east-1d",), True, Single())
    assert (trainer.subnets, trainer.public_address) == (("fabric-us-east-1d",), False)
    assert (plan.access.key_pair, plan.access.head) == (KEY, "head")


def test_with_session_manager_alone_nothing_is_public(aws: Project) -> None:
    plan = aws.plan(nodes=with_head())

    assert not any(each.public_address for each in plan.groups)
    assert plan.access.key_pair is None
    assert "SessionManager" in {statement.sid for statement in plan.permissions}


def test_without_internet_only_endpoints_lead_out(aws: Project) -> None:
    network = aws.plan(network="{cidr: 10.40.0.0/16, internet: none}").network

    services = {each.service.removeprefix("com.amazonaws.us-east-1."): each.kind for each in network.endpoints}
    assert services.pop("s3") == "gateway"
    assert set(services.values()) == {"interface"}
    assert {"ec2", "sts", "ssm", "ssmmessages", "ec2messages", "logs", "monitoring", "kms"} <= set(services)
    assert network.nat == ()
    assert all(subnet.nat is None and not subnet.public for subnet in network.subnets)


def test_with_nat_s3_alone_has_an_endpoint(aws: Project) -> None:
    (endpoint,) = aws.plan().network.endpoints

    assert (endpoint.service, endpoint.kind) == ("com.amazonaws.us-east-1.s3", "gateway")


def test_lustre_over_efa_speaks_freely_with_its_clients_both_ways(aws: Project) -> None:
    plan = aws.plan(nodes=with_head(), storage=f"[{LUSTRE}]")

    found = rules_of(plan)
    for group_name, direction, peer in [
        ("a", "egress", "fsx.lustre"),
        ("a", "ingress", "fsx.lustre"),
        ("fsx.lustre", "egress", "a"),
        ("fsx.lustre", "ingress", "a"),
        ("fsx.lustre", "egress", "fsx.lustre"),
        ("fsx.lustre", "ingress", "fsx.lustre"),
    ]:
        assert (group_name, direction, "-1", None, peer) in found
    ranges = {
        (rule.port, rule.last_port)
        for rule in plan.network.rules
        if {rule.group, rule.peer_group} == {"head", "fsx.lustre"}
    }
    assert ranges == {(988, None), (1018, 1023)}


@pytest.mark.parametrize(
    "nodes", [group(market="{kind: spot}"), group(count=None, min=1, max=4, market="{kind: spot}")]
)
def test_spot_is_terminated_asked_once_and_never_the_lowest_price(aws: Project, nodes: str) -> None:
    market = aws.plan(nodes=nodes).groups[0].market

    assert market.kind == "spot"
    assert (market.interruption, market.request, market.strategy) == (
        "terminate",
        "one-time",
        "price-capacity-optimized",
    )


def test_permissions_name_actions_and_what_they_are_about(aws: Project) -> None:
    statements = aws.plan(storage=f"[{BUCKET}]").permissions

    assert not any("*" in action for statement in statements for action in statement.actions)
    free = {statement.sid for statement in statements if statement.resources[0].kind == "anything"}
    assert free == {"SeeNodes", "SessionManager"}
    assert len({statement.sid for statement in statements}) == len(statements)


def test_the_image_fits_the_processor_and_is_the_recorded_one(aws: Project) -> None:
    plan = aws.plan(
        images="{arm64: ami-0123456789abcdef0}", nodes=group(type="g5g.xlarge", count=1)[:-1] + f", {HEAD}]"
    )

    arm, head = (each.image for each in plan.groups)
    assert (arm.architecture, arm.recorded) == ("arm64", "ami-0123456789abcdef0")
    assert "/arm64/" in arm.parameter
    assert (head.architecture, head.recorded) == ("x86_64", None)
    assert "/amd64/" in head.parameter


def test_a_node_has_its_disks(aws: Project) -> None:
    head, trainer = aws.plan(nodes=with_head(root="{size_gib: 500, mib_per_second: 1000}")).groups

    assert (head.root.size_gib, head.scratch) == (50, None)
    assert (trainer.root.size_gib, trainer.root.iops, trainer.root.mib_per_second) == (500, 4000, 1000)
    assert trainer.scratch is not None
    assert (trainer.scratch.disks, trainer.scratch.size_gb, trainer.scratch.mount) == (8, 8000, "/scratch")


@pytest.mark.parametrize(
    ("count", "fabric", "expected"), [(4, "preferred", "efa"), (1, "preferred", "tcp"), (4, "none", "tcp")]
)
def test_a_preferred_fabric_is_taken_where_nodes_have_others_to_speak_to(
    aws: Project, count: int, fabric: str, expected: str
) -> None:
    assert aws.plan(nodes=group(count=count, fabric=fabric)).groups[0].fabric == expected


def test_nodes_of_a_gang_speak_freely_even_without_efa_and_servers_do_not(aws: Project) -> None:
    gang = aws.plan(nodes=group(type="g6.xlarge", fabric="none"))
    serving = aws.plan(nodes=group(type="g6.xlarge", fabric="none", count=None, min=1, max=4))

    assert ("a", "ingress", "-1", None, "a") in rules_of(gang)
    assert not any(rule.protocol == "-1" for rule in serving.network.rules)


def test_the_announcements_are_those_of_the_markets(aws: Project) -> None:
    spot = aws.plan(nodes=group(market="{kind: spot}")).interruption
    block = aws.plan(nodes=group(market="{kind: block, id: cr-0123456789abcdef0}")).interruption

    assert {"EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"} <= {
        event.detail_type for event in spot.events
    }
    assert "block-expiration" in {event.name for event in block.events}
    assert not {"spot-interruption", "rebalance"} & {event.name for event in block.events}


def test_the_key_is_rotated_and_scaling_may_use_it_where_something_scales(aws: Project) -> None:
    fixed, elastic = aws.plan().key, aws.plan(nodes=group(count=None, min=1, max=2)).key

    assert 90 <= fixed.rotation_days <= 2560
    assert 7 <= fixed.deletion_days <= 30
    assert (fixed.scaling_grant, elastic.scaling_grant) == (False, True)


@pytest.mark.parametrize("removable", [True, False])
def test_data_outlives_its_cluster_unless_asked_otherwise(aws: Project, removable: bool) -> None:
    (bucket,) = aws.plan(storage=f"[{BUCKET[:-1]}, removable: {str(removable).lower()}}}]").storage

    assert isinstance(bucket, BucketPlan)
    assert bucket.retention.destroyable == removable
