"""A tenant is the same whoever made the cluster: one that is there, one of EKS, one of ACK."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from infra.clouds.kubernetes.plan.charts import unknown_values
from infra.clouds.kubernetes.plan.identity import POLICY
from infra.clouds.kubernetes.plan.jobs import NETWORK_CHECK, objects
from infra.clouds.kubernetes.plan.model import KubernetesPlan, TenantPlan
from infra.clouds.kubernetes.plan.pods import EFA, pods
from infra.clouds.kubernetes.plan.tenancy import tenant_plan
from infra.clouds.kubernetes.policy.pods import pod_specs
from infra.clouds.kubernetes.spec.cluster import Claim, Components, Tenancy
from infra.evaluate import decide
from infra.graph import Graph, render
from infra.spec import load

REPOSITORY = Path(__file__).resolve().parents[3]
OWN = {"eks-a100": "eks", "ack-gn7": "ack"}
OPERATOR = Components(driver="operator", device_plugin="operator")


@cache
def project() -> Path:
    """This project's stacks, with ACK's tenant in EKS's cluster too."""
    root = Path(tempfile.mkdtemp())
    (root / "infra").symlink_to(REPOSITORY / "infra")
    shutil.copy(REPOSITORY / "Pulumi.yaml", root)
    shutil.copytree(REPOSITORY / "stacks", root / "stacks")
    asked = {stack: yaml.safe_load((root / "stacks" / f"Pulumi.{stack}.yaml").read_text()) for stack in OWN}
    cluster = {key: asked[stack]["config"]["gpufleet:cluster"][key] for stack, key in OWN.items()}
    cluster["eks"]["tenant"] = cluster["ack"]["tenant"]
    (root / "stacks" / "Pulumi.eks-a100.yaml").write_text(yaml.safe_dump(asked["eks-a100"]))
    return root


@cache
def graph(stack: str) -> Graph:
    return render(project(), stack)


def tenant_of(stack: str) -> TenantPlan:
    plan = decide(load(project(), stack))
    return plan.tenant if isinstance(plan, KubernetesPlan) else getattr(plan, OWN[stack]).tenant


def kinds(tenant: TenantPlan) -> list[str]:
    return [manifest.body["kind"] for manifest in tenant.manifests]


@pytest.mark.parametrize("stack", OWN)
def test_a_cluster_of_the_stacks_own_gets_what_a_tenant_of_a_foreign_one_gets(stack: str) -> None:
    foreign = [kind for kind in kinds(tenant_of("k8s-a100")) if kind != "ScaledObject"]
    own = [each.body["kind"] for each in tenant_of(stack).manifests if each.name != f"networkpolicy-{POLICY}"]

    assert own == foreign


@pytest.mark.parametrize("stack", OWN)
def test_what_is_planned_for_a_tenant_is_declared_through_one_provider(stack: str) -> None:
    objects = [node for node in graph(stack).nodes.values() if node.type.startswith("kubernetes:") and node.custom]
    (provider,) = graph(stack).of("pulumi:providers:kubernetes")

    tenant = tenant_of(stack)
    assert len(objects) == len(tenant.manifests) + len(tenant.charts) + bool(tenant.identity)
    assert {node.provider for node in objects} == {provider.urn}


@pytest.mark.parametrize(("stack", "program"), [("eks-a100", "aws"), ("ack-gn7", "ack-ram-tool")])
def test_the_provider_logs_in_by_a_program_and_keeps_no_credential(stack: str, program: str) -> None:
    (provider,) = graph(stack).of("pulumi:providers:kubernetes")
    config = json.loads(provider.inputs["kubeconfig"]["value"])

    (user,) = config["users"]
    assert set(user["user"]) == {"exec"}
    assert user["user"]["exec"]["command"] == program


def test_each_cloud_owns_what_its_images_bring() -> None:
    def operator(stack: str) -> dict[str, Any]:
        return dict(next(chart.values for chart in tenant_of(stack).charts if chart.name == "gpu-operator"))

    assert operator("eks-a100")["driver"] == operator("ack-gn7")["driver"] == {"enabled": False}
    assert operator("eks-a100")["devicePlugin"] == {"enabled": True}  # EKS's image has none
    assert operator("ack-gn7")["devicePlugin"] == {"enabled": False}  # ACK's has its own
    charts = {stack: {chart.name for chart in tenant_of(stack).charts} for stack in OWN}
    assert charts["eks-a100"] - charts["ack-gn7"] == {"aws-efa-k8s-device-plugin"}


def test_what_is_served_is_scaled_by_charts_that_the_stack_brings() -> None:
    tenant = tenant_of("k8s-a100")
    charts = {chart.name: chart for chart in tenant.charts}
    (scaler,) = [m for m in tenant.manifests if "scal" in m.body["kind"].lower()]
    (trigger,) = scaler.body["spec"]["triggers"]

    assert scaler.chart in charts
    assert trigger["metadata"]["serverAddress"].endswith(f".{charts['kube-prometheus-stack'].namespace}:9090")


@pytest.mark.parametrize("stack", [*OWN, "k8s-a100"])
def test_the_series_of_a_gpu_keep_the_names_of_the_pod_that_holds_it(stack: str) -> None:
    (operator,) = [chart for chart in tenant_of(stack).charts if chart.name == "gpu-operator"]

    assert operator.values["dcgmExporter"]["serviceMonitor"] == {"enabled": True, "honorLabels": True}


def test_spot_pods_of_ack_may_save_nearly_as_long_as_the_notice_lasts() -> None:
    plan = decide(load(REPOSITORY, "ack-gn7"))
    (job,) = [m.body for m in plan.ack.tenant.manifests if m.body["kind"] == "TrainingRuntime"]  # pyright: ignore[reportAttributeAccessIssue]

    (node,) = job["spec"]["template"]["spec"]["replicatedJobs"]
    assert node["template"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 280


@pytest.mark.parametrize("stack", OWN)
def test_charts_of_a_clusters_own_tenant_without_a_digest_are_named(stack: str) -> None:
    plan = decide(load(project(), stack))
    (finding,) = [each for each in plan.findings if each.rule == "charts-are-known-by-digest"]

    assert (finding.level, "gpu-operator v26.7.0" in finding.message) == ("warning", True)
    assert not [chart for chart in plan.charts if chart.sha256 and f"{chart.name} " in finding.message]


def infiniband() -> TenantPlan:
    volume = Claim(name="data", kind="volume", mount="/data", size_gib=100, storage_class="shared")
    asked = Tenancy(name="lab", image=f"example.com/train@sha256:{'0' * 64}", volumes=(volume,))
    group = pods("trainer", 2, ("H100-SXM5-80GB", 8), labels={"pool": "gpu"}, fabric=("rdma/ib", 8))
    return tenant_plan(asked, [group], OPERATOR)


def named(name: str, group: str) -> TenantPlan:
    """A tenant whose charts are another's."""
    asked = Tenancy(name=name, image=f"example.com/train@sha256:{'0' * 64}", volumes=())
    nodes = pods(group, 2, ("H100-SXM5-80GB", 8), labels={"pool": "gpu"})
    return tenant_plan(asked, [nodes], Components(driver="image", device_plugin="cluster", install=False))


@pytest.mark.parametrize("other", [("b", "c"), ("a-b", "c"), ("a-b", "production")])
def test_tenants_of_one_cluster_have_nothing_of_the_same_name(other: tuple[str, str]) -> None:
    one, two = (
        {(m.body["kind"], m.body["metadata"]["name"]) for m in tenant.manifests if not m.namespaced}
        for tenant in (named("a", "b-c"), named(*other))
    )

    assert one & two == set()


@pytest.mark.parametrize("form", ["job", "jobset", "trainjob"])
def test_a_job_names_priorities_that_its_tenant_has(form: Literal["job", "jobset", "trainjob"]) -> None:
    tenant = infiniband()
    group = pods("trainer", 2, ("H100-SXM5-80GB", 8), labels={"pool": "gpu"})
    bodies = [m.body for m in tenant.manifests if m.body["kind"] == "TrainingRuntime"]
    bodies += objects(replace(tenant, form=form), group, (), "a", "", [], "key")

    asked = set(re.findall(r'"(?:kueue.x-k8s.io/priority-class|priorityClassName)": "([^"]+)"', json.dumps(bodies)))

    assert asked == {"lab.production"}
    for kind in ("PriorityClass", "WorkloadPriorityClass"):
        assert asked <= {m.body["metadata"]["name"] for m in tenant.manifests if m.body["kind"] == kind}


@pytest.mark.parametrize("form", ["job", "jobset", "trainjob"])
def test_a_pod_of_every_form_begins_with_the_network_check(form: Literal["job", "jobset", "trainjob"]) -> None:
    tenant = replace(infiniband(), form=form)
    group = pods("trainer", 2, ("H100-SXM5-80GB", 8), labels={"pool": "gpu"})
    bodies: list[Any] = [m.body for m in tenant.manifests if form == "trainjob" and m.body["kind"] == "TrainingRuntime"]
    bodies += objects(tenant, group, (), "a", "", [], "key")

    specs = [spec for body in bodies for _, spec in pod_specs(body) if "containers" in spec]
    (spec,) = [spec for spec in specs if spec["containers"][0]["name"] == "node"]

    (check,) = spec["initContainers"]
    assert check["image"] == tenant.image
    assert check["command"][:3] == ["python", "-I", "-c"]
    assert check["command"][3] == NETWORK_CHECK
    assert check["securityContext"] == spec["containers"][0]["securityContext"]
    assert "hostNetwork" not in spec


def test_shared_rdma_cards_come_by_the_network_operator_without_a_driver() -> None:
    tenant = infiniband()

    assert [chart.name for chart in tenant.charts][:3] == ["kube-prometheus-stack", "gpu-operator", "network-operator"]
    (policy,) = [m for m in tenant.manifests if m.body["kind"] == "NicClusterPolicy"]
    assert policy.chart == "network-operator"
    assert set(policy.body["spec"]) == {"rdmaSharedDevicePlugin"}
    (offer,) = json.loads(policy.body["spec"]["rdmaSharedDevicePlugin"]["config"])["configList"]
    assert offer["resourceName"] == "ib"


def test_no_chart_is_given_a_value_that_it_does_not_know() -> None:
    for tenant in (tenant_of("k8s-a100"), tenant_of("eks-a100"), tenant_of("ack-gn7"), infiniband()):
        assert [unknown_values(chart) for chart in tenant.charts] == [[]] * len(tenant.charts)


def test_efa_is_asked_for_with_its_huge_pages() -> None:
    group = pods("a", 2, ("A100-SXM4-40GB", 8), labels={"pool": "gpu"}, fabric=(EFA, 4))

    assert group.resources == {"nvidia.com/gpu": "8", EFA: "4", "hugepages-2Mi": "5120Mi"}
