"""Alibaba Cloud stacks: what is wrong is one line, what is shipped is whole, and money is what the tables say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ali_clusters import REPOSITORY, Project, cluster, group

from infra.clouds.alicloud.plan.capacity import Machines
from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.evaluate import decide
from infra.handover import Storage
from infra.spec import SpecError, load, stacks

STACKS = [stack for stack in stacks(REPOSITORY) if load(REPOSITORY, stack).spec.cloud == "alicloud"]
GOLDEN = Path(__file__).parents[1] / "graph_plan" / "golden"  # what each renders to, as that folder's tests prove
_, *LINES = (Path(__file__).parent / "ali_mistakes.txt").read_text().splitlines()
CASES = [tuple(part.strip() for part in line.split(" | ")) for line in LINES]
UNMOUNTED = "buckets-are-mounted"  # a checksum that nobody publishes is for whoever looked at the package
KNOWN_GAPS = {
    "ack-gn7": {"charts-are-known-by-digest"},  # of four charts no digest could be taken from their publishers
    "aliyun-a100": {UNMOUNTED},
    "aliyun-spot": {UNMOUNTED},
    "aliyun-scc": {UNMOUNTED, "nodes-have-a-price"},  # the vendor tells the price of an SCC, and no table
    "hybrid": {UNMOUNTED},
}


@pytest.mark.parametrize(("key", "value", "expected"), CASES)
def test_each_mistake_is_one_line_with_file_line_and_key(ali: Project, key: str, value: str, expected: str) -> None:
    text = cluster(**{key: value})
    line = 3 + [written.partition(":")[0] for written in text.splitlines()].index(key)
    place, _, words = expected.partition(": ")

    with pytest.raises(SpecError) as caught:
        ali.load(text)

    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (line, f"cluster.{place}")
    assert words in problem.message
    assert str(caught.value).startswith(f"stacks/Pulumi.x.yaml:{line} cluster.{place}: ")


def test_the_shipped_stacks_of_alibaba_cloud_are_these() -> None:
    assert set(STACKS) >= {"aliyun-a100", "aliyun-spot", "aliyun-scc", "ack-gn7"}


@pytest.mark.parametrize("stack", STACKS)
def test_a_shipped_stack_of_alibaba_cloud_plans_clean(stack: str) -> None:
    document = json.loads((GOLDEN / f"{stack}.json").read_text())

    found = {finding["rule"] for finding in document["findings"] if finding["level"] != "info"}
    assert found == KNOWN_GAPS.get(stack, set())
    assert document["cost"]["currency"] == "CNY"
    assert len(document["resources"]) > 40


def test_nodes_mount_a_bucket_by_a_client_of_a_known_checksum_and_without_keys(ali: Project) -> None:
    bucket = "[{name: data, kind: bucket, mount: /data}]"

    (mounted,) = ali.plan(storage=bucket, ossfs_sha256="0" * 63 + "f").storage
    (only_there,) = ali.plan(storage=bucket).storage

    told = Storage.of(mounted, "data-0a1b2c3")
    assert (told.path, told.client, told.checksum) == ("/data", "ossfs", "0" * 63 + "f")
    assert set(told.options) == {
        "allow_other",
        "oss_endpoint=https://oss-cn-beijing-internal.aliyuncs.com",
        "oss_region=cn-beijing",
        "ram_role=gpufleet-x-nodes",
    }
    assert Storage.of(only_there, "data-0a1b2c3").path == "", "no node looks for what none mounts"


def test_jobs_meet_at_the_one_port_that_the_head_lets_nodes_come_to() -> None:
    document = json.loads((GOLDEN / "aliyun-a100.json").read_text())

    rules = [row["inputs"] for row in document["resources"] if row["type"].endswith(":SecurityGroupRule")]
    meeting = [rule for rule in rules if rule["description"] == "jobs meet at the rendezvous store"]
    port = document["outputs"]["cluster"]["store"]["port"]
    assert {rule["portRange"] for rule in meeting} == {f"{port:.0f}/{port:.0f}"}


def test_a_price_is_nodes_times_the_table() -> None:
    plan = decide(load(REPOSITORY, "aliyun-a100"))

    assert plan.cost.hourly == pytest.approx(4 * 270.8333 + 0.52325)
    assert plan.cost.per_gpu_hour == pytest.approx(270.8333 / 8)


def test_a_scaling_group_of_a_thousand_nodes_is_one_resource_and_machines_are_not(ali: Project) -> None:
    few, many = (ali.plan(nodes=group(type="ecs.gn7i-c8g1.2xlarge", queue_pairs=None, count=n, fabric="none"))
                 for n in (4, 1000))  # fmt: skip

    assert few.groups[1].capacity.kind == many.groups[1].capacity.kind == "fleet"
    assert len(few.network.rules) == len(many.network.rules)
    assert isinstance(ali.plan().groups[1].capacity, Machines)


def test_switching_the_cloud_changes_only_what_is_about_the_cloud() -> None:
    aws, ali = (asked(stack) for stack in ("a100-prod", "aliyun-a100"))

    assert {key for key in aws if aws[key] != ali.get(key)} == {"cloud", "region", "zone", "nodes", "budget"}
    for here, there in zip(aws["nodes"], ali["nodes"], strict=True):
        differ = {key for key in {*here, *there} if here.get(key) != there.get(key)}
        assert differ <= {"type", "market", "queue_pairs"}
    assert aws["budget"].keys() == ali["budget"].keys()


def test_no_job_file_names_a_cloud() -> None:
    """So that the same one goes from stack to stack as it is."""
    jobs = sorted((REPOSITORY / "training" / "jobs").glob("*.toml"))
    clouds = re.compile(r"\b(aws|s3|ec2|eks|alicloud|aliyun|oss|ack|kubernetes|onprem)\b", re.IGNORECASE)

    assert jobs
    assert [job.name for job in jobs if clouds.search(job.read_text())] == []


def test_two_eris_stand_on_two_cards_with_queue_pairs_of_their_own(ali: Project) -> None:
    plan = ali.plan()
    assert isinstance(plan, AlicloudPlan)

    assert [(eri.network_card_index, eri.queue_pairs) for eri in plan.groups[1].eris] == [(0, 8192), (1, 8192)]


def asked(stack: str) -> dict[str, Any]:
    text = (REPOSITORY / "stacks" / f"Pulumi.{stack}.yaml").read_text()
    return yaml.safe_load(text)["config"]["gpufleet:cluster"]
