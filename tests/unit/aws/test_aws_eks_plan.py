"""The decision for a cluster of EKS: addresses for pods, who speaks to whom, and what its nodes are made from."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from importlib.resources import files
from ipaddress import IPv4Network
from typing import Any

import pytest
from clusters import Project
from eks_rule_cases import eks

from infra.catalog import InstanceType
from infra.catalog import load as tables
from infra.clouds.aws.plan.capacity import ManagedPool
from infra.clouds.aws.plan.eks_nodes import POD_ADDRESSES_PER_NODE, PODS_PER_NODE
from infra.clouds.aws.plan.model import AwsPlan

CONTROL_PLANE_ADDRESSES = 16  # EKS User Guide, "VPC and subnet requirements": recommended in each subnet
AWS_TAKES = 5  # of every subnet

# EC2 DescribeInstanceTypes, as moto ships it; it lacks the newest types.
EC2: Mapping[str, Any] = json.loads(
    gzip.decompress(files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes())
)
KNOWN = [kind for kind in tables().types if kind.cloud == "aws" and kind.name in EC2]


def capacity(plan: AwsPlan, name: str) -> ManagedPool:
    (found,) = [group.capacity for group in plan.groups if group.name == name]
    assert isinstance(found, ManagedPool)
    return found


def pairs(plan: AwsPlan) -> set[tuple[str, str, str, int | None, int | None, str | None]]:
    return {
        (rule.group, rule.direction, rule.protocol, rule.port, rule.last_port, rule.peer_group or rule.peer_cidr)
        for rule in plan.network.rules
    }


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.name)
def test_every_type_has_addresses_for_its_pods_on_two_interfaces(kind: InstanceType) -> None:
    network = EC2[kind.name]["NetworkInfo"]
    (card,) = [card for card in network["NetworkCards"] if card["NetworkCardIndex"] == 0]
    for_efa = 1 if kind.fabric == "efa" and kind.fabric_on_first_card else 0
    usable = min(2, card["MaximumNetworkInterfaces"] - for_efa)

    assert usable * (network["Ipv4AddressesPerInterface"] - 1) >= PODS_PER_NODE
    assert usable + PODS_PER_NODE <= 1 + POD_ADDRESSES_PER_NODE


def test_a_subnet_holds_the_pods_of_its_nodes_and_the_control_plane(aws: Project) -> None:
    plan = aws.plan(**eks(count=100))

    room = {subnet.name: IPv4Network(subnet.cidr).num_addresses - AWS_TAKES for subnet in plan.network.subnets}
    assert room["fabric-us-east-1d"] >= 100 * (1 + POD_ADDRESSES_PER_NODE)
    for zone in plan.zones:  # the system group spans both
        assert room[f"private-{zone}"] >= 2 * (1 + POD_ADDRESSES_PER_NODE) + CONTROL_PLANE_ADDRESSES


def test_pods_that_have_no_addresses_are_refused(aws: Project) -> None:
    (error,) = aws.plan(**eks(count=100), network="{cidr: 10.40.0.0/22}").errors

    assert (error.rule, error.path) == ("network-holds-the-subnets", "cluster.network.cidr")


def test_a_zone_of_the_control_plane_alone_costs_no_gateway(aws: Project) -> None:
    nodes = str(eks()["nodes"]).replace("count: 2}", "count: 2, zone: us-east-1d}")
    network = aws.plan(**{**eks(), "nodes": nodes}).network

    assert {subnet.zone for subnet in network.subnets} == {"us-east-1d", "us-east-1a"}
    assert network.nat == ("public-us-east-1d",)


def test_nodes_are_never_public_and_nobody_logs_in_to_them(aws: Project) -> None:
    plan = aws.plan(**eks())

    assert not any(group.public_address for group in plan.groups)
    assert {subnet.kind for subnet in plan.network.subnets} == {"public", "private", "fabric"}
    assert not any(rule.port == 22 for rule in plan.network.rules)
    assert (plan.access.key_pair, plan.store, plan.bundle) == (None, None, None)


def test_pods_speak_freely_and_the_fabric_with_itself_both_ways(aws: Project) -> None:
    found = pairs(aws.plan(**eks()))

    for one in ("system", "a"):
        for other in ("system", "a"):
            assert (one, "egress", "-1", None, None, other) in found
            assert (other, "ingress", "-1", None, None, one) in found


def test_the_control_plane_and_its_nodes_reach_each_other_and_nothing_else_reaches_it(aws: Project) -> None:
    found = pairs(aws.plan(**eks()))

    plane = "eks.control-plane"
    assert {rule[1:] for rule in found if rule[0] == plane and rule[1] == "ingress"} == {
        ("ingress", "tcp", 443, None, node) for node in ("system", "a")
    }
    for node in ("system", "a"):
        assert {(node, "ingress", "tcp", 443, None, plane), (node, "ingress", "tcp", 1025, 65535, plane)} <= found


def test_without_internet_a_cluster_still_reaches_eks_and_its_images(aws: Project) -> None:
    plan = aws.plan(**eks(), network="{cidr: 10.40.0.0/16, internet: none}")

    services = {each.service.removeprefix("com.amazonaws.us-east-1.") for each in plan.network.endpoints}
    assert {"eks", "eks-auth", "sts", "ec2", "ecr.api", "ecr.dkr", "s3"} <= services
    assert not plan.errors
    assert "nodes-can-fetch-what-they-need" not in {finding.rule for finding in plan.findings}


@pytest.mark.parametrize(("size", "refused"), [(19, True), (20, False)])
def test_a_root_volume_holds_the_image_of_eks(aws: Project, size: int, refused: bool) -> None:
    errors = aws.plan(**eks(root=f"{{size_gib: {size}}}")).errors

    assert [finding.rule for finding in errors] == ["volume-exists"] * refused


@pytest.mark.parametrize(
    ("type_name", "image"),
    [
        ("p4d.24xlarge", "AL2023_x86_64_NVIDIA"),
        ("g5g.xlarge", "AL2023_ARM_64_NVIDIA"),
        ("m6i.large", "AL2023_x86_64_STANDARD"),
    ],
)
def test_the_image_is_that_of_the_hardware(aws: Project, type_name: str, image: str) -> None:
    assert capacity(aws.plan(**eks(type=type_name, fabric="none")), "a").image_type == image


def test_the_image_that_eks_will_choose_has_its_public_name(aws: Project) -> None:
    _, trainer = aws.plan(**eks()).groups

    assert trainer.image.parameter == (
        "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
    )


def test_the_name_of_a_cluster_is_one_that_eks_takes(aws: Project) -> None:
    plan = aws.plan(**eks())

    assert plan.eks is not None
    assert plan.eks.name == "gpufleet-x"


def test_nodes_may_be_reached_by_session_manager_only_where_it_was_asked_for(aws: Project) -> None:
    without = {**eks("api_from: [8.8.8.0/24]"), "access": "{}"}

    assert "SessionManager" in {statement.sid for statement in aws.plan(**eks()).permissions}
    assert "SessionManager" not in {statement.sid for statement in aws.plan(**without).permissions}
    assert not aws.plan(**without).errors


def test_a_private_cluster_that_nobody_can_enter_is_refused(aws: Project) -> None:
    (error,) = aws.plan(**{**eks(), "access": "{}"}).errors

    assert error.rule == "somebody-can-log-in"
