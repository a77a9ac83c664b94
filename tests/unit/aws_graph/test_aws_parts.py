"""What each part of a cluster on AWS declares."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graph_clusters import BLOCK, CLUSTERS, ELASTIC, FABRIC
from rendered import REPOSITORY, inputs, planned, render, script, statements, the

from infra.clouds.aws import bundle
from infra.clouds.aws.launch_template import dollars
from infra.graph import Graph
from infra.plan.aws import AwsPlan

USER_DATA_BYTES = 16_384  # EC2's limit, before base64
Rendered = Callable[[str], Graph]


def trainer(graph: Graph) -> dict[str, Any]:
    return inputs(graph, "LaunchTemplate", "trainer-template")


def test_a_fabric_node_has_one_address_and_four_efa_cards(graph_of: Rendered) -> None:
    cards = trainer(graph_of("fabric"))["networkInterfaces"]

    assert [(card["networkCardIndex"], card["deviceIndex"], card.get("interfaceType")) for card in cards] == [
        (0, 0, None),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]
    assert {card["deleteOnTermination"] for card in cards} == {"true"}
    assert all(card["securityGroups"] == ["${trainer-firewall.id}"] for card in cards)


def test_several_interfaces_say_nothing_of_public_addresses_and_subnets(graph_of: Rendered) -> None:
    cards = trainer(graph_of("fabric"))["networkInterfaces"]

    assert not {"associatePublicIpAddress", "subnetId"} & {key for card in cards for key in card}


def test_a_reservation_is_targeted_by_its_id_without_preference_or_group(graph_of: Rendered) -> None:
    template = trainer(graph_of("fabric"))

    assert template["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
    }
    assert not {"placement", "instanceMarketOptions"} & set(template)
    assert graph_of("fabric").of("PlacementGroup") == []


def test_a_reservation_in_a_group_is_met_in_that_group(root: Path) -> None:
    arn = "arn:aws:ec2:us-east-1:123456789012:placement-group/ours"
    text = FABRIC.replace("id: cr-0123456789abcdef0", f"id: cr-0123456789abcdef0, placement_group: {arn}")

    assert trainer(render(planned(root, text), root))["placement"] == {"groupName": "ours"}


def test_a_capacity_block_has_its_market_its_target_and_no_group(graph_of: Rendered) -> None:
    graph = graph_of("block")
    template = trainer(graph)

    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert "capacityReservationTarget" in template["capacityReservationSpecification"]
    assert "placement" not in template
    assert inputs(graph, "Fleet")["targetCapacitySpecification"]["defaultTargetCapacityType"] == "capacity-block"
    assert not {"spotOptions", "onDemandOptions"} & set(inputs(graph, "Fleet"))


def test_a_p5_block_has_33_interfaces(graph_of: Rendered) -> None:
    assert len(trainer(graph_of("block"))["networkInterfaces"]) == 33


def test_a_spot_gang_is_capped_refilled_and_ends_with_the_stack(graph_of: Rendered) -> None:
    fleet = inputs(graph_of("spot"), "Fleet")

    assert (fleet["type"], fleet["replaceUnhealthyInstances"]) == ("maintain", True)
    assert fleet["spotOptions"] == {
        "allocationStrategy": "price-capacity-optimized",
        "instanceInterruptionBehavior": "terminate",
    }
    assert [one["maxPrice"] for one in fleet["launchTemplateConfigs"][0]["overrides"]] == ["14"]
    assert fleet["terminateInstances"] is fleet["terminateInstancesWithExpiration"] is True
    assert "instanceMarketOptions" not in trainer(graph_of("spot"))


def test_an_on_demand_gang_is_all_or_nothing(graph_of: Rendered) -> None:
    fleet = inputs(graph_of("fabric"), "Fleet")

    assert fleet["type"] == "instant"
    assert fleet["onDemandOptions"] == {
        "minTargetCapacity": 4,
        "singleAvailabilityZone": True,
        "singleInstanceType": True,
    }


def test_a_spot_gang_stands_in_a_group_of_its_own(graph_of: Rendered) -> None:
    assert inputs(graph_of("spot"), "PlacementGroup")["strategy"] == "cluster"
    assert trainer(graph_of("spot"))["placement"] == {"groupName": "${trainer-placement.name}"}


def test_an_elastic_group_mixes_markets_in_every_zone(graph_of: Rendered) -> None:
    group = inputs(graph_of("elastic"), "autoscaling/group:Group", "server-scaling")

    assert (group["minSize"], group["maxSize"], "desiredCapacity" in group) == (1, 6, False)
    assert group["vpcZoneIdentifiers"] == ["${private-us-east-1a.id}", "${private-us-east-1b.id}"]
    assert group["mixedInstancesPolicy"]["instancesDistribution"] == {
        "onDemandBaseCapacity": 1,
        "onDemandPercentageAboveBaseCapacity": 0,
        "spotAllocationStrategy": "price-capacity-optimized",
        "spotMaxPrice": "0.6",
    }
    assert "launchTemplate" not in group


def test_an_elastic_group_follows_the_load_of_its_own_gpus(graph_of: Rendered) -> None:
    policy = inputs(graph_of("elastic"), "autoscaling/policy:Policy", "server-scaling-by-gpu-load")
    tracked = policy["targetTrackingConfiguration"]

    assert tracked["targetValue"] == 85
    assert tracked["customizedMetricSpecification"]["metricDimensions"] == [
        {"name": "stack", "value": "elastic"},
        {"name": "group", "value": "server"},
    ]


def test_a_reserved_elastic_group_takes_its_template_plain(root: Path) -> None:
    reserved = "market: {kind: reservation, id: cr-0123456789abcdef0}, zone: us-east-1a"
    text = ELASTIC.replace("min: 1, max: 2", f"min: 1, max: 2, {reserved}")

    group = inputs(render(planned(root, text), root), "autoscaling/group:Group", "steady-scaling")

    assert group["launchTemplate"] == {"id": "${steady-template.id}", "version": "$Default"}
    assert "mixedInstancesPolicy" not in group


def test_the_head_is_the_only_machine_with_a_public_address(graph_of: Rendered) -> None:
    graph = graph_of("fabric")
    (interface,) = inputs(graph, "LaunchTemplate", "head-template")["networkInterfaces"]

    assert (interface["associatePublicIpAddress"], interface["subnetId"]) == ("true", "${public-us-east-1d.id}")
    assert [node.inputs["mapPublicIpOnLaunch"] for node in graph.of("Subnet")] == [False] * 3
    assert graph.outputs["cluster"]["store"] == {"host": "head", "address": "${head-machine.privateIp}"}


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


def test_everything_at_rest_is_under_the_stacks_key(graph_of: Rendered) -> None:
    graph, key = graph_of("fabric"), "${encryption-key.arn}"
    (root_disk,) = trainer(graph)["blockDeviceMappings"]
    (bucket,) = inputs(graph, "BucketServerSideEncryptionConfiguration", "storage-data-encryption")["rules"]

    assert (root_disk["ebs"]["encrypted"], root_disk["ebs"]["kmsKeyId"]) == ("true", key)
    assert bucket["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": key}
    assert inputs(graph, "LustreFileSystem")["kmsKeyId"] == key
    assert inputs(graph, "Queue")["kmsMasterKeyId"] == key
    assert inputs(graph, "LogGroup")["kmsKeyId"] == key


def test_the_key_knows_its_account_without_asking_and_lets_scaling_groups_start_nodes(graph_of: Rendered) -> None:
    key = inputs(graph_of("elastic"), "kms/key:Key")
    account, *rest = statements(key["policy"])

    assert account["Principal"] == {"AWS": "arn:aws:iam::${vpc.ownerId}:root"}
    assert (key["enableKeyRotation"], key["rotationPeriodInDays"]) == (True, 365)
    assert "AWSServiceRoleForAutoScaling" in json.dumps(rest)
    assert "AWSServiceRoleForAutoScaling" not in inputs(graph_of("fabric"), "kms/key:Key")["policy"]


def test_the_nodes_role_names_its_actions_and_buckets(graph_of: Rendered) -> None:
    allowed = statements(inputs(graph_of("fabric"), "RolePolicy", "nodes-permissions")["policy"])

    assert not [action for one in allowed for action in one["Action"] if "*" in action]
    assert [one["Resource"] for one in allowed if one["Sid"] == "UseObjects"] == [["${storage-data-bucket.arn}/*"]]


def test_announcements_reach_the_queue_and_nobody_else_writes_to_it(graph_of: Rendered) -> None:
    graph = graph_of("spot")
    patterns = [json.loads(node.inputs["eventPattern"]) for node in graph.of("EventRule")]
    allow, deny = statements(inputs(graph, "QueuePolicy")["policy"])

    assert {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]} in patterns
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    assert "${spot-interruption-event.arn}" in allow["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_budget_counts_what_carries_the_stacks_tag(graph_of: Rendered) -> None:
    budget = inputs(graph_of("fabric"), "Budget", "budget-monthly")

    assert budget["costFilters"] == [{"name": "TagKeyValue", "values": ["user:gpufleet:stack$fabric"]}]
    assert (budget["limitAmount"], budget["limitUnit"]) == ("70000.00", "USD")
    assert [one["threshold"] for one in budget["notifications"]] == [50, 80, 100]


def test_a_file_system_shows_its_bucket(graph_of: Rendered) -> None:
    association = inputs(graph_of("fabric"), "DataRepositoryAssociation")

    assert association["dataRepositoryPath"] == "s3://${storage-data-bucket.bucket}"
    assert association["fileSystemId"] == "${storage-fast-files.id}"


def test_an_image_that_nobody_recorded_reads_as_its_public_name(graph_of: Rendered) -> None:
    image = inputs(graph_of("alone"), "LaunchTemplate", "dev-template")["imageId"]

    assert image == "resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"


def test_user_data_is_a_script_within_the_limit_that_knows_its_bundle(graph_of: Rendered) -> None:
    text = script(trainer(graph_of("fabric")))
    boot = json.loads(text.split("<<'GPUFLEET'\n")[1].split("\nGPUFLEET\n")[0])

    assert len(text.encode()) < USER_DATA_BYTES
    assert boot["bundle"]["key"] == f"bundles/{boot['bundle']['sha256']}.tar"
    assert boot["bundle"]["bucket"] == "${own-bucket.bucket}"
    assert boot["storage"]["data"] == "${storage-data-bucket.bucket}"
    assert boot["group"] == "trainer"


def test_the_script_is_sound_shell_and_sound_python(graph_of: Rendered) -> None:
    text = script(trainer(graph_of("fabric")))

    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    ast.parse(text.split("python3 - <<'GPUFLEET'\n")[1].split("\nGPUFLEET\n")[0])


def test_the_bundle_is_the_same_for_the_same_files(tmp_path: Path) -> None:
    for order in (("a.yml", "b.yml"), ("b.yml", "a.yml")):
        folder = tmp_path / order[0] / "playbooks"
        folder.mkdir(parents=True)
        for name in order:
            (folder / name).write_text(name)

    first, second = (bundle.packed(tmp_path / name) for name in ("a.yml", "b.yml"))

    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert tar.getnames() == ["playbooks/a.yml", "playbooks/b.yml"]


def test_the_bundle_that_is_uploaded_has_the_content_of_its_name(root: Path, graph_of: Rendered) -> None:
    uploaded = the(graph_of("fabric"), "BucketObjectv2").inputs

    kept = Path(uploaded["source"]["path"])

    assert uploaded["key"] == f"bundles/{hashlib.sha256(kept.read_bytes()).hexdigest()}.tar"
    assert kept.is_relative_to(root)


@pytest.mark.parametrize(("price", "text"), [(14.0, "14"), (0.6, "0.6"), (0.00012, "0.00012"), (31.212, "31.212")])
def test_a_price_is_written_without_exponent(price: float, text: str) -> None:
    assert dollars(price) == text


def test_a_stack_without_budget_or_public_subnets_declares_neither(root: Path) -> None:
    plan = planned(root, BLOCK)
    assert isinstance(plan, AwsPlan)

    graph = render(replace(plan, budget=None), root)

    assert (graph.of("Budget"), graph.of("InternetGateway")) == ([], [])


def test_only_the_cloud_s_own_folder_imports_its_sdk() -> None:
    pattern = re.compile(r"^\s*(?:from|import) pulumi_aws\b", re.MULTILINE)
    users = {file.parent for file in (REPOSITORY / "infra").rglob("*.py") if pattern.search(file.read_text())}

    assert users == {REPOSITORY / "infra" / "clouds" / "aws"}
