"""Who reaches whom, and which way out there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from graph_clusters import BLOCK, CLUSTERS
from rendered import inputs, planned, render

from infra.clouds.aws.plan.model import AwsPlan
from infra.graph import Graph

Rendered = Callable[[str], Graph]


def test_the_head_is_the_only_machine_with_a_public_address(graph_of: Rendered) -> None:
    graph = graph_of("fabric")
    (interface,) = inputs(graph, "LaunchTemplate", "head-template")["networkInterfaces"]

    assert (interface["associatePublicIpAddress"], interface["subnetId"]) == ("true", "${public-us-east-1d.id}")
    assert [node.inputs["mapPublicIpOnLaunch"] for node in graph.of("Subnet")] == [False] * 3
    assert graph.outputs["cluster"]["store"] == {
        "host": "head",
        "address": "${head-machine.privateIp}",
        "port": 29400,
    }


def test_ssh_is_open_to_the_named_networks_and_the_head_alone(graph_of: Rendered) -> None:
    doors = [
        (node.inputs["securityGroupId"], node.inputs.get("cidrIpv4") or node.inputs["referencedSecurityGroupId"])
        for node in graph_of("fabric").of("SecurityGroupIngressRule")
        if node.inputs.get("fromPort") == 22
    ]

    assert sorted(doors) == [
        ("${head-firewall.id}", "198.51.100.0/24"),
        ("${head-firewall.id}", "203.0.113.0/24"),
        ("${trainer-firewall.id}", "${head-firewall.id}"),
    ]


def test_the_fabric_speaks_to_itself_both_ways(graph_of: Rendered) -> None:
    graph = graph_of("fabric")
    both = [
        inputs(graph, f"SecurityGroup{way}Rule", f"trainer-{way.lower()}-all-trainer") for way in ("Ingress", "Egress")
    ]

    for rule in both:
        assert rule["ipProtocol"] == "-1"
        assert rule["referencedSecurityGroupId"] == rule["securityGroupId"] == "${trainer-firewall.id}"
        assert not {"fromPort", "toPort", "cidrIpv4"} & set(rule)


def test_rules_are_never_part_of_a_group(graph_of: Rendered) -> None:
    for name in CLUSTERS:
        for group in graph_of(name).of("SecurityGroup"):
            assert not {"ingress", "egress"} & set(group.inputs)


def test_the_default_group_is_emptied(graph_of: Rendered) -> None:
    default = inputs(graph_of("fabric"), "DefaultSecurityGroup")

    assert (default["ingress"], default["egress"]) == ([], [])


def test_without_internet_there_is_no_gateway_and_endpoints_have_private_names(graph_of: Rendered) -> None:
    graph = graph_of("block")
    endpoints = [node.inputs for node in graph.of("VpcEndpoint")]

    assert [kind for kind in ("InternetGateway", "NatGateway", "Eip", "Route") if graph.of(kind)] == []
    assert {"com.amazonaws.us-east-1.ssm", "com.amazonaws.us-east-1.s3"} <= {one["serviceName"] for one in endpoints}
    assert {one["privateDnsEnabled"] for one in endpoints if one["vpcEndpointType"] == "Interface"} == {True}


def test_a_node_starts_only_once_its_way_out_its_firewall_and_its_rights_are_there(graph_of: Rendered) -> None:
    graph = graph_of("fabric")
    starts = {urn.rpartition("::")[2] for node in ("trainer-fleet", "trainer-template") for urn in depends(graph, node)}

    assert {"fabric-us-east-1d-out", "fabric-us-east-1d-routed", "nodes-permissions", "bundle-object"} <= starts
    assert {"trainer-egress-tcp-443-0-0-0-0-0", "trainer-ingress-all-trainer"} <= starts


def depends(graph: Graph, name: str) -> tuple[str, ...]:
    (node,) = (node for node in graph.nodes.values() if node.name == name)
    return node.dependencies


def test_a_nat_gateway_waits_for_the_route_to_the_internet(graph_of: Rendered) -> None:
    names = [urn.rpartition("::")[2] for urn in depends(graph_of("fabric"), "public-us-east-1d-nat")]

    assert "public-us-east-1d-out" in names


def test_a_stack_without_budget_or_public_subnets_declares_neither(root: Path) -> None:
    plan = planned(root, BLOCK)
    assert isinstance(plan, AwsPlan)

    graph = render(replace(plan, budget=None), root)

    assert (graph.of("Budget"), graph.of("InternetGateway")) == ([], [])
