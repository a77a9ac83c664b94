"""Every rule of a tenant has a stack that it tells of; the shipped one, in every form of a job, is told of by none."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import policy
from infra.checks import every
from infra.clouds.kubernetes.plan.charts import KUEUE, unknown_values
from infra.clouds.kubernetes.plan.jobs import objects
from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.evaluate import decide
from infra.policy import Resource
from infra.spec import load

REPOSITORY = Path(__file__).resolve().parents[3]
SHIPPED = yaml.safe_load((REPOSITORY / "stacks" / "Pulumi.k8s-a100.yaml").read_text())["config"]["gpufleet:cluster"]
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    return tmp_path


def planned(root: Path, change: Change = lambda _: None) -> KubernetesPlan:
    cluster = copy.deepcopy(SHIPPED)
    change(cluster)
    (root / "stacks" / "Pulumi.x.yaml").write_text(yaml.safe_dump({"config": {"gpufleet:cluster": cluster}}))
    plan = decide(load(root, "x"))
    assert isinstance(plan, KubernetesPlan)
    return plan


def nodes(**changed: Any) -> Change:
    return lambda cluster: cluster["nodes"][0].update(changed)


def parts(**changed: Any) -> Change:
    return lambda cluster: cluster["components"].update(changed)


CASES: dict[str, tuple[Change, str]] = {
    "slices that train together": (nodes(mig="1g.5gb"), "a-slice-trains-alone"),
    "a slice of another GPU": (nodes(mig="1g.20gb", gpus=1, count=1), "a-slice-is-one-of-its-gpu"),
    "hostname as a level": (nodes(topology=["kubernetes.io/hostname"]), "hostname-is-the-narrowest-level"),
    "a driver of an operator that is not there": (parts(driver="operator", install=False), "one-owner-of-the-gpus"),
    "Volta": (nodes(gpu="V100-SXM2-32GB"), "pods-run-the-locked-torch"),
    "no fabric": (nodes(fabric=None), "pods-of-a-job-are-joined"),
    "no volume": (lambda cluster: cluster.update(storage=[]), "ranks-share-a-volume"),
    "charts of a version that can change": (lambda _: None, "charts-are-known-by-digest"),
    "the same, where that is refused": (lambda c: c.update(supply="strict"), "strict-charts-are-known-by-digest"),
    "three cards": (
        nodes(fabric={"resource": "vpc.amazonaws.com/efa", "count": 3}),
        "the-node-takes-its-fabric-whole",
    ),
}


def test_the_shipped_stack_has_no_findings_but_charts_whose_digests_nobody_knows(root: Path) -> None:
    (finding,) = planned(root).findings

    assert (finding.level, finding.rule) == ("warning", "charts-are-known-by-digest")
    assert "kueue 0.19.2" in finding.message
    assert "keda 2.20.2" not in finding.message


def test_a_strict_stack_is_refused_for_its_charts_without_a_digest_and_told_the_command(root: Path) -> None:
    (finding,) = planned(root, lambda cluster: cluster.update(supply="strict")).findings

    assert finding.level == "error"
    assert "no digest of kube-prometheus-stack 88.5.3, gpu-operator v26.7.0" in finding.message
    assert "run `gpufleet catalog charts --write`" in finding.message


def test_a_tenant_of_a_cluster_with_charts_of_its_own_has_no_findings(root: Path) -> None:
    owns = parts(driver="image", device_plugin="cluster", install=False)

    assert planned(root, owns).findings == ()


@pytest.mark.parametrize("case", CASES)
def test_a_tenant_that_cannot_work_is_told_by_its_rule(root: Path, case: str) -> None:
    change, rule = CASES[case]

    assert rule in {finding.rule for finding in planned(root, change).findings}


def test_every_rule_of_tenants_has_a_case() -> None:
    own = {rule.name for rule in every().values() if rule.kind is KubernetesPlan}

    assert own - {rule for _, rule in CASES.values()} == {"charts-know-their-values"}


def test_a_misspelt_value_of_a_chart_is_found() -> None:
    misspelt = replace(KUEUE, values={"controllerManager": {"replica": 2}})

    assert unknown_values(KUEUE) == []
    assert unknown_values(misspelt) == ["controllerManager.replica"]


@pytest.mark.parametrize("form", ["job", "jobset", "trainjob"])
def test_a_submitted_job_keeps_the_policy(root: Path, form: Any) -> None:
    plan = planned(root)
    tenant = replace(plan.tenant, form=form)
    bodies = objects(tenant, plan.groups[0], plan.storage, "a", "steps = 1\n", [], "key")

    rows = [Resource(type=f"kubernetes:{body['apiVersion']}:{body['kind']}", name="a", inputs=body) for body in bodies]

    assert {finding.rule for finding in policy.check(rows)} <= {"explicit-provider"}


def test_spot_pods_leave_before_the_notice_ends_and_tolerate_its_taint(root: Path) -> None:
    plan = planned(root, nodes(capacity="spot"))
    body = next(m.body for m in plan.tenant.manifests if m.body["kind"] == "ResourceFlavor")

    assert plan.groups[0].grace_seconds == 110
    assert "gpufleet.io/spot" in {each["key"] for each in body["spec"]["tolerations"]}
