"""What pods of a cluster of EKS may do at AWS: each service account by a role of its own, nodes for none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from graph_clusters import EKS
from rendered import inputs, planned, render, statements

from infra.graph import Graph

Rendered = Callable[[str], Graph]


@pytest.mark.parametrize(
    ("addon", "account"), [("vpc-cni", "aws-node"), ("aws-mountpoint-s3-csi-driver", "s3-csi-driver-sa")]
)
def test_pods_take_on_roles_of_their_own(graph_of: Rendered, addon: str, account: str) -> None:
    graph = graph_of("eks")
    (identity,) = inputs(graph, "Addon", f"{addon}-addon")["podIdentityAssociations"]
    (trust,) = statements(inputs(graph, "iam/role:Role", f"{addon}-role")["assumeRolePolicy"])

    assert identity == {"roleArn": f"${{{addon}-role.arn}}", "serviceAccount": account}
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]


@pytest.mark.parametrize(
    ("role", "namespace", "account"),
    [
        ("vpc-cni", "kube-system", "aws-node"),
        ("aws-mountpoint-s3-csi-driver", "kube-system", "s3-csi-driver-sa"),
        ("tenant", "research", "trainer"),
    ],
)
def test_a_pods_role_is_of_one_service_account_of_this_cluster_and_account(
    tenants: Graph, role: str, namespace: str, account: str
) -> None:
    (trust,) = statements(inputs(tenants, "iam/role:Role", f"{role}-role")["assumeRolePolicy"])

    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Condition"] == {
        "StringEquals": {
            "aws:SourceAccount": "${vpc.ownerId}",
            "aws:RequestTag/eks-cluster-name": "gpufleet-x",
            "aws:RequestTag/kubernetes-namespace": namespace,
            "aws:RequestTag/kubernetes-service-account": account,
        }
    }


def test_a_tenants_pods_may_use_what_is_theirs_in_the_stacks_buckets_and_nothing_else(tenants: Graph) -> None:
    identity = inputs(tenants, "PodIdentityAssociation")
    allowed = {one["Sid"]: one for one in statements(inputs(tenants, "RolePolicy", "tenant-permissions")["policy"])}

    assert (identity["namespace"], identity["serviceAccount"]) == ("research", "trainer")
    assert identity["roleArn"] == "${tenant-role.arn}"
    assert set(allowed) == {"ListOwn", "UseOwn", "UseKey"}
    assert allowed["UseOwn"]["Resource"] == ["${storage-data-bucket.arn}/research/*"]
    within = {"StringEquals": {"aws:SourceVpc": "${vpc.id}"}}
    assert allowed["UseOwn"]["Condition"] == within
    assert allowed["ListOwn"]["Condition"] == {**within, "StringLike": {"s3:prefix": "research/*"}}
    assert allowed["UseKey"]["Condition"] == {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}


def test_a_tenant_without_buckets_has_no_role(root: Path) -> None:
    bare = render(planned(root, with_tenant(EKS).partition("storage:")[0]), root)

    assert bare.of("PodIdentityAssociation") == []


def with_tenant(text: str) -> str:
    image = f"a/b@sha256:{'0' * 64}"
    volume = "{name: work, kind: volume, mount: /work, size_gib: 100, storage_class: shared}"
    tenant = f"  tenant: {{name: research, image: '{image}', volumes: [{volume}]}}\n"
    return text.replace("  api_from: [8.8.8.0/24]\n", f"  api_from: [8.8.8.0/24]\n{tenant}")


@pytest.fixture(scope="module")
def tenants(root: Path) -> Graph:
    """A cluster of EKS with a tenant."""
    return render(planned(root, with_tenant(EKS)), root)


def test_nodes_may_neither_touch_interfaces_nor_the_data_which_is_for_pods(graph_of: Rendered) -> None:
    graph = graph_of("eks")
    roles = ("nodes", "vpc-cni", "aws-mountpoint-s3-csi-driver", "control-plane")
    allowed = {role: actions_of(inputs(graph, "RolePolicy", f"{role}-permissions")["policy"]) for role in roles}

    assert "ec2:CreateNetworkInterface" in allowed["vpc-cni"] - allowed["nodes"]
    assert "s3:GetObject" in allowed["aws-mountpoint-s3-csi-driver"] - allowed["nodes"]
    assert {"ecr:BatchGetImage", "eks-auth:AssumeRoleForPodIdentity"} <= allowed["nodes"]
    assert not [action for actions in allowed.values() for action in actions if "*" in action]
    assert graph.of("RolePolicyAttachment") == []


def actions_of(policy: str) -> set[str]:
    given = [one["Action"] for one in statements(policy)]
    return {action for actions in given for action in ([actions] if isinstance(actions, str) else actions)}
