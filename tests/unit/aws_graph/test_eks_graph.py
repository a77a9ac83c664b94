"""A cluster of EKS as a graph: what its control plane, its add-ons and its managed nodes declare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_clusters import EKS
from rendered import inputs, planned, render, script

from infra.graph import Graph

Rendered = Callable[[str], Graph]
LEFT_TO_EKS = ("imageId", "iamInstanceProfile", "keyName", "instanceInitiatedShutdownBehavior")


def cluster(graph: Graph) -> dict[str, Any]:
    return inputs(graph, "eks/cluster:Cluster")


def nodes(graph: Graph, group: str) -> dict[str, Any]:
    return inputs(graph, "NodeGroup", f"{group}-nodes")


def template(graph: Graph, group: str) -> dict[str, Any]:
    return inputs(graph, "LaunchTemplate", f"{group}-template")


def before(graph: Graph, name: str) -> set[str]:
    """The names of what a resource waits for."""
    (node,) = (node for node in graph.nodes.values() if node.name == name)
    return {urn.rpartition("::")[2] for urn in node.dependencies}


def test_the_api_is_reached_from_the_vpc_and_from_the_named_networks(graph_of: Rendered) -> None:
    network = cluster(graph_of("eks"))["vpcConfig"]

    assert (network["endpointPrivateAccess"], network["endpointPublicAccess"]) == (True, True)
    assert network["publicAccessCidrs"] == ["8.8.8.0/24"]
    assert network["subnetIds"] == ["${private-us-east-1d.id}", "${private-us-east-1a.id}"]
    assert network["securityGroupIds"] == ["${eks-control-plane-firewall.id}"]


def test_without_named_networks_the_api_is_private(root: Path) -> None:
    network = cluster(render(planned(root, EKS.replace("  api_from: [8.8.8.0/24]\n", "")), root))["vpcConfig"]

    assert (network["endpointPrivateAccess"], network["endpointPublicAccess"]) == (True, False)
    assert "publicAccessCidrs" not in network


def test_secrets_are_under_the_stacks_key_and_everything_is_logged_under_it_too(graph_of: Rendered) -> None:
    graph = graph_of("eks")
    log = inputs(graph, "LogGroup", "control-plane-log")

    assert cluster(graph)["encryptionConfig"] == {
        "provider": {"keyArn": "${encryption-key.arn}"},
        "resources": ["secrets"],
    }
    assert set(cluster(graph)["enabledClusterLogTypes"]) == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }
    assert (log["name"], log["kmsKeyId"]) == (f"/aws/eks/{cluster(graph)['name']}/cluster", "${encryption-key.arn}")
    assert "control-plane-log" in before(graph, "control-plane-cluster")


def test_only_the_named_roles_may_use_the_cluster(graph_of: Rendered) -> None:
    graph = graph_of("eks")

    assert cluster(graph)["accessConfig"] == {
        "authenticationMode": "API",
        "bootstrapClusterCreatorAdminPermissions": False,
    }
    rights = {(one.inputs["principalArn"], one.inputs["policyArn"]) for one in graph.of("AccessPolicyAssociation")}
    assert {principal for principal, _ in rights} == {
        "arn:aws:iam::111122223333:role/ops",
        "arn:aws:iam::444455556666:role/team/ops",
    }
    assert {policy for _, policy in rights} == {"arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"}
    assert len(graph.of("AccessEntry")) == 2


def test_no_cluster_slips_into_extended_support_or_gets_addons_that_nobody_manages(graph_of: Rendered) -> None:
    asked = cluster(graph_of("eks"))

    assert (asked["version"], asked["upgradePolicy"]) == ("1.35", {"supportType": "STANDARD"})
    assert asked["bootstrapSelfManagedAddons"] is False


@pytest.mark.parametrize("group", ["system", "trainer", "cheap"])
def test_a_template_leaves_to_eks_what_eks_refuses(graph_of: Rendered, group: str) -> None:
    found = template(graph_of("eks"), group)

    assert not set(LEFT_TO_EKS) & set(found)
    assert "instanceMarketOptions" not in found
    assert not {"subnetId"} & {key for card in found["networkInterfaces"] for key in card}
    assert all(card["securityGroups"] for card in found["networkInterfaces"])
    assert "vpcSecurityGroupIds" not in found


def test_the_type_stands_in_the_template_alone(graph_of: Rendered) -> None:
    graph = graph_of("eks")

    assert template(graph, "trainer")["instanceType"] == "p4d.24xlarge"
    assert not {"instanceTypes", "diskSize", "remoteAccess"} & set(nodes(graph, "trainer"))
    assert nodes(graph, "trainer")["launchTemplate"] == {
        "id": "${trainer-template.id}",
        "version": "${trainer-template.latestVersion}",
    }


def test_managed_nodes_have_the_cards_and_the_reservation_of_plain_ones(graph_of: Rendered) -> None:
    managed, plain = (template(graph_of(name), "trainer") for name in ("eks", "fabric"))

    assert managed["networkInterfaces"] == plain["networkInterfaces"]
    assert managed["capacityReservationSpecification"] == plain["capacityReservationSpecification"]


def test_the_roles_of_managed_nodes_are_out_of_their_pods_reach(graph_of: Rendered) -> None:
    """A pod is a hop away from its host; the answer with the token ends there."""
    for group in ("system", "trainer", "cheap"):
        assert template(graph_of("eks"), group)["metadataOptions"] == {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": 1,
        }


def test_the_network_plugin_enforces_network_policies(graph_of: Rendered) -> None:
    settings = json.loads(inputs(graph_of("eks"), "Addon", "vpc-cni-addon")["configurationValues"])

    assert settings["enableNetworkPolicy"] == "true"


@pytest.mark.parametrize(
    ("group", "capacity", "image"),
    [
        ("system", "ON_DEMAND", "AL2023_x86_64_STANDARD"),
        ("trainer", "ON_DEMAND", "AL2023_x86_64_NVIDIA"),
        ("cheap", "SPOT", "AL2023_x86_64_NVIDIA"),
    ],
)
def test_a_group_has_the_image_of_its_hardware_and_the_capacity_of_its_market(
    graph_of: Rendered, group: str, capacity: str, image: str
) -> None:
    found = nodes(graph_of("eks"), group)

    assert (found["capacityType"], found["amiType"]) == (capacity, image)


@pytest.mark.parametrize(("type_name", "image"), [("g5g.xlarge", "AL2023_ARM_64_NVIDIA")])
def test_a_group_of_arm_nodes_has_an_image_for_arm(root: Path, type_name: str, image: str) -> None:
    graph = render(planned(root, EKS.replace("g6.xlarge", type_name)), root)

    assert nodes(graph, "cheap")["amiType"] == image


def test_a_capacity_block_is_one_in_the_group_and_in_its_template(root: Path) -> None:
    graph = render(planned(root, EKS.replace("kind: reservation", "kind: block")), root)

    assert nodes(graph, "trainer")["capacityType"] == "CAPACITY_BLOCK"
    assert nodes(graph, "trainer")["subnetIds"] == ["${fabric-us-east-1d.id}"]
    assert template(graph, "trainer")["instanceMarketOptions"] == {"marketType": "capacity-block"}


def test_a_root_volume_holds_the_image_and_is_named_as_the_image_names_it(graph_of: Rendered) -> None:
    (disk,) = template(graph_of("eks"), "trainer")["blockDeviceMappings"]

    assert (disk["deviceName"], disk["ebs"]["volumeSize"], disk["ebs"]["encrypted"]) == ("/dev/xvda", 200, "true")


def test_a_node_is_told_its_most_pods_and_what_to_do_with_its_local_disks(graph_of: Rendered) -> None:
    trainer, system = (node_config(template(graph_of("eks"), group)) for group in ("trainer", "system"))

    assert trainer == {
        "kubelet": {"config": {"maxPods": 18}},
        "instance": {"localStorage": {"strategy": "RAID0"}},
    }
    assert system == {"kubelet": {"config": {"maxPods": 18}}}


def node_config(found: dict[str, Any]) -> dict[str, Any]:
    """What the only part of the user data says; its MIME is what cloud-init takes."""
    head, body = script(found).split("\n\n", 1)
    assert 'boundary="gpufleet"' in head
    part = body.removeprefix("--gpufleet\nContent-Type: application/node.eks.aws\n\n").removesuffix("\n--gpufleet--\n")
    said = json.loads(part)
    assert (said["apiVersion"], said["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    return said["spec"]


def test_pods_without_a_toleration_stay_off_nodes_with_gpus(graph_of: Rendered) -> None:
    graph = graph_of("eks")

    assert nodes(graph, "trainer")["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert not nodes(graph, "system")["taints"]


def test_an_update_of_reserved_gpus_needs_no_spare_ones(graph_of: Rendered) -> None:
    assert nodes(graph_of("eks"), "trainer")["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}


def test_nodes_join_a_cluster_that_has_a_network_and_dns_waits_for_nodes(graph_of: Rendered) -> None:
    graph = graph_of("eks")

    assert {"vpc-cni-addon", "kube-proxy-addon", "eks-pod-identity-agent-addon", "control-plane-cluster"} <= before(
        graph, "trainer-nodes"
    )
    assert "nodes-permissions" in before(graph, "trainer-nodes")
    assert {"system-nodes", "trainer-nodes"} <= before(graph, "coredns-addon")


def test_the_addons_are_those_that_the_cluster_needs(graph_of: Rendered, root: Path) -> None:
    def names(graph: Graph) -> set[str]:
        return {addon.inputs["addonName"] for addon in graph.of("Addon")}

    always = {"vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "eks-node-monitoring-agent"}
    bare = render(planned(root, EKS.partition("storage:")[0]), root)
    assert names(bare) == always
    assert names(graph_of("eks")) == always | {"aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver"}


def test_the_network_plugin_takes_as_many_addresses_as_a_node_has_pods(graph_of: Rendered) -> None:
    settings = json.loads(inputs(graph_of("eks"), "Addon", "vpc-cni-addon")["configurationValues"])

    assert settings["env"] == {"MINIMUM_IP_TARGET": "18", "WARM_IP_TARGET": "1"}


def test_a_cluster_of_eks_has_no_bundle_no_login_key_and_no_profile(graph_of: Rendered) -> None:
    graph = graph_of("eks")

    for kind in ("BucketObjectv2", "KeyPair", "InstanceProfile", "Fleet", "autoscaling/group:Group"):
        assert graph.of(kind) == []


def test_the_handover_names_the_cluster_and_what_is_mounted(graph_of: Rendered) -> None:
    told = graph_of("eks").outputs["cluster"]

    assert told["kubernetes"] == {"cluster": "gpufleet-eks"}
    assert told["access"]["key_file"] == ""
    assert {each["name"]: (each["kind"], each["source"]) for each in told["storage"]} == {
        "data": ("bucket", "${storage-data-bucket.bucket}"),
        "fast": ("lustre", "${storage-fast-files.dnsName}@tcp:/${storage-fast-files.mountName}"),
    }


def test_a_thousand_managed_nodes_are_as_many_resources_as_four(root: Path) -> None:
    few, many = (render(planned(root, EKS.replace("count: 4", f"count: {count}")), root) for count in (4, 1000))

    assert set(few.nodes) == set(many.nodes)
