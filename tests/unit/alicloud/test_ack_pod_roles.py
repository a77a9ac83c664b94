"""What a tenant's pods of a cluster of ACK may do: one RAM role, for one service account, below one prefix (RRSA)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ack_rule_cases import ACK, TENANT
from ali_clusters import SYSTEM, Project, group
from ali_rule_cases import A10
from rendered import render  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra.clouds.alicloud.resources.ack import registered
from infra.clouds.kubernetes.plan import jobs
from infra.clouds.kubernetes.plan.pods import pods
from infra.clouds.kubernetes.policy.pods import pod_specs
from infra.graph import Graph

TOKEN_FILE = "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token"
DATA = "${storage-data-bucket.bucket}"


def cluster_spec(*, buckets: bool = True, **changes: Any) -> dict[str, Any]:
    storage = "[{name: data, kind: bucket, mount: /data}]" if buckets else None
    return {
        **ACK,
        "nodes": group(SYSTEM, **A10),
        "ack": f"{{version: '1.35', tenant: {TENANT}}}",
        "storage": storage,
        **changes,
    }


@pytest.fixture
def tenants(ali: Project) -> Graph:
    """A cluster of ACK with a tenant and a bucket."""
    return render(ali.plan(**cluster_spec()), ali.root)


def statements(text: str) -> Iterator[dict[str, Any]]:
    yield from json.loads(text)["Statement"]


def test_the_role_is_of_one_service_account_by_tokens_of_this_cluster_for_sts(tenants: Graph) -> None:
    (role,) = tenants.of("ram/role:Role")
    (cluster,) = tenants.of("ManagedKubernetes")

    (trust,) = statements(role.inputs["assumeRolePolicyDocument"])

    assert cluster.inputs["enableRrsa"] is True
    assert trust["Principal"] == {"Federated": [f"${{{cluster.name}.rrsaMetadata.ramOidcProviderArn}}"]}
    assert trust["Condition"] == {
        "StringEquals": {
            "oidc:iss": f"${{{cluster.name}.rrsaMetadata.rrsaOidcIssuerUrl}}",
            "oidc:aud": "sts.aliyuncs.com",
            "oidc:sub": "system:serviceaccount:research:trainer",
        }
    }


def test_pods_use_and_list_what_is_theirs_in_the_stacks_buckets_and_nothing_else(tenants: Graph) -> None:
    (policy,) = tenants.of("ram/policy:Policy")

    listed, used, key = statements(policy.inputs["policyDocument"])

    assert listed["Action"] == ["oss:ListObjects"]
    assert listed["Resource"] == [f"acs:oss:*:*:{DATA}"]
    assert listed["Condition"] == {"StringLike": {"oss:Prefix": "research/*"}}
    assert used["Resource"] == [f"acs:oss:*:*:{DATA}/research/*"]
    assert "oss:PutObject" in used["Action"]
    assert key["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert key["Resource"] == ["${encryption-key.arn}"]


def test_a_pod_gets_a_token_for_sts_and_the_names_that_sdks_look_for(tenants: Graph) -> None:
    (runtime,) = tenants.of("TrainingRuntime")
    (learnt,) = [node for node in tenants.of("core/v1:ConfigMap") if node.inputs["metadata"]["name"] == "cloud-role"]
    ((_, pod),) = pod_specs(runtime.inputs)
    (container,) = pod["containers"]

    (volume,) = [each for each in pod["volumes"] if each["name"] == "cloud-role"]

    assert volume["projected"]["sources"] == [
        {"serviceAccountToken": {"audience": "sts.aliyuncs.com", "expirationSeconds": 3600, "path": "token"}}
    ]
    mount = {"name": "cloud-role", "mountPath": TOKEN_FILE.rpartition("/")[0], "readOnly": True}
    assert mount in container["volumeMounts"]
    assert container["envFrom"] == [{"configMapRef": {"name": "cloud-role"}}]
    assert pod["serviceAccountName"] == "trainer"
    assert pod["automountServiceAccountToken"] is False
    assert all("envFrom" not in each for each in pod["initContainers"])
    assert learnt.inputs["metadata"]["namespace"] == "research"
    assert learnt.inputs["data"] == {
        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": "${kubernetes-cluster.rrsaMetadata.ramOidcProviderArn}",
        "ALIBABA_CLOUD_OIDC_TOKEN_FILE": TOKEN_FILE,
        "ALIBABA_CLOUD_ROLE_ARN": "${pods-role.arn}",
        "ALIBABA_CLOUD_STS_REGION": "cn-beijing",
        "ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED": "true",
    }


def test_no_webhook_is_relied_on(tenants: Graph) -> None:
    (account,) = tenants.of("core/v1:ServiceAccount")
    addons = [node.inputs["name"] for node in tenants.of("KubernetesAddon")]

    assert "annotations" not in account.inputs["metadata"]
    assert "ack-pod-identity-webhook" not in addons


def test_pods_reach_the_clouds_services_by_https_and_not_its_metadata(tenants: Graph) -> None:
    (way,) = [node for node in tenants.of("NetworkPolicy") if node.inputs["metadata"]["name"] == "cloud-services"]

    (egress,) = way.inputs["spec"]["egress"]

    assert egress["to"] == [{"ipBlock": {"cidr": "100.64.0.0/10", "except": ["100.100.100.200/32"]}}]
    assert egress["ports"] == [{"port": 443, "protocol": "TCP"}]


@pytest.mark.parametrize("form", ["job", "jobset"])
def test_jobs_of_every_form_get_the_token(ali: Project, form: str) -> None:
    plan = ali.plan(**cluster_spec(ack=f"{{version: '1.35', tenant: {TENANT[:-1]}, form: {form}}}}}"))
    assert plan.ack is not None
    assert plan.ack.tenant is not None
    tenant = plan.ack.tenant

    *_, job = jobs.objects(tenant, pods("a", 2, ("A10", 1), labels={"a": "b"}), (), "run", "", (), "key")

    ((_, pod),) = pod_specs(job)
    assert {"name": "cloud-role", "projected": pod["volumes"][-1]["projected"]} in pod["volumes"]
    assert pod["containers"][0]["envFrom"] == [{"configMapRef": {"name": "cloud-role"}}]


def test_a_tenant_without_buckets_has_no_role_and_no_way_out(ali: Project) -> None:
    graph = render(ali.plan(**cluster_spec(buckets=False)), ali.root)

    assert graph.of("ram/role:Role") == []
    assert "cloud-services" not in {node.inputs["metadata"]["name"] for node in graph.of("NetworkPolicy")}


@pytest.mark.parametrize("issuer", [None, ""])
def test_a_cluster_without_an_issuer_is_an_error_and_no_open_role(issuer: str | None) -> None:
    with pytest.raises(ValueError, match="is RRSA on"):
        registered(issuer)
