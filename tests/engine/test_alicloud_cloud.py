"""The stand-in for Alibaba Cloud takes what pulumi_alicloud takes, and refuses what its API is known to refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from alicloud_cloud import values
from alicloud_cloud.cloud import Cloud
from alicloud_cloud.kinds import (
    CLUSTER,
    CONFIGURATION,
    INSTANCE,
    KINDS,
    MIX,
    NODE_POOL,
    SCALING_GROUP,
    TEMPLATE,
    VPC,
    VSWITCH,
)
from cloud_provider import arguments
from cloud_provider.kinds import RefusedError
from cloud_provider.store import Row, Store

GOLDEN = Path(__file__).parents[1] / "unit" / "graph_plan" / "golden"


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(Store(tmp_path / "cloud.sqlite"), "cn-beijing")


def made(cloud: Cloud, type_: str, **inputs: object) -> Row:
    return cloud.create(type_, f"urn:{type_}", inputs, {})


def test_every_type_and_every_fixed_argument_of_the_stand_in_is_one_of_the_sdk() -> None:
    for type_ in (VPC, INSTANCE, MIX):  # the others' shapes are read by the engine's own tests
        assert set(KINDS[type_].fixed) <= set(arguments.shape(type_)["object"])


def test_an_unknown_and_a_missing_argument_are_each_a_line() -> None:
    lines = arguments.problems(CONFIGURATION, {"imageld": "ubuntu"})

    assert lines == [
        "imageld: unknown argument; did you mean 'imageId'?",
        "scalingGroupId: missing required argument",
    ]


@pytest.mark.parametrize("stack", ["aliyun-a100", "aliyun-spot", "aliyun-scc", "ack-gn7", "hybrid"])
def test_every_value_of_a_reviewed_plan_is_one_that_the_provider_takes(stack: str) -> None:
    rows = json.loads((GOLDEN / f"{stack}.json").read_text())["resources"]

    assert [line for row in rows for line in values.problems(row["type"], row["inputs"])] == []
    assert len(rows) > 40


@pytest.mark.parametrize(
    ("type_", "wrong", "said"),
    [
        (CONFIGURATION, {"systemDiskSize": 900}, "systemDiskSize: must be 20..500, not 900"),
        (INSTANCE, {"httpTokens": "yes"}, "httpTokens: must be optional required, not 'yes'"),
        (NODE_POOL, {"instanceMetadataOptions": {"httpTokens": "no"}}, "instanceMetadataOptions.httpTokens: must be"),
        (MIX, {"spotInstanceInterruptionBehavior": "end"}, "spotInstanceInterruptionBehavior: must be stop terminate"),
    ],
)
def test_a_value_that_the_provider_refuses_is_refused(
    cloud: Cloud, type_: str, wrong: dict[str, object], said: str
) -> None:
    with pytest.raises(RefusedError, match=re.escape(said)):
        made(cloud, type_, **wrong)


def test_a_vswitch_outside_its_vpc_is_refused(cloud: Cloud) -> None:
    vpc = made(cloud, VPC, cidrBlock="10.0.0.0/16")

    with pytest.raises(RefusedError, match="outside"):
        made(cloud, VSWITCH, vpcId=vpc.id, cidrBlock="10.1.0.0/24")


def test_a_vpc_in_use_stays(cloud: Cloud) -> None:
    vpc = made(cloud, VPC, cidrBlock="10.0.0.0/16")
    made(cloud, VSWITCH, vpcId=vpc.id, cidrBlock="10.0.0.0/24")

    with pytest.raises(RefusedError, match="DependencyViolation"):
        cloud.delete(VPC, vpc.id)


def test_what_does_not_exist_cannot_be_named(cloud: Cloud) -> None:
    with pytest.raises(RefusedError, match="does not exist"):
        made(cloud, INSTANCE, vswitchId="vsw-0123456789abcdef")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"queuePairNumber": 8}, {"networkCardIndex": 1}, "no queue pairs are left"),
        ({"queuePairNumber": 8, "networkCardIndex": 1}, {"queuePairNumber": 8, "networkCardIndex": 1}, "one card"),
    ],
)
def test_two_eris_need_cards_and_queue_pairs_of_their_own(
    cloud: Cloud, first: dict[str, object], second: dict[str, object], said: str
) -> None:
    with pytest.raises(RefusedError, match=said):
        made(cloud, INSTANCE, **first, networkInterfaces=second)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"version": "1.35", "addons": [{"name": "terway-eniip"}]}, "1.35 is no release of ACK"),
        ({"version": "1.35.2-aliyun.1", "addons": [{"name": "csi-plugin"}]}, "need the network plug-in"),
    ],
)
def test_a_cluster_is_of_a_release_and_born_with_its_network(cloud: Cloud, asked: dict[str, object], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        made(cloud, CLUSTER, **asked)


def test_machines_of_a_template_have_the_tags_that_it_has_for_them(cloud: Cloud) -> None:
    template = made(cloud, TEMPLATE, launchTemplateName="a", tags={"gpufleet:group": "a"})

    made(cloud, MIX, launchTemplateId=template.id, totalTargetCapacity="2")

    assert [row.tags for row in cloud.store.of(INSTANCE)] == [{"gpufleet:group": "a"}] * 2


def test_a_mix_that_is_not_told_to_end_its_machines_leaves_them_behind(cloud: Cloud) -> None:
    for told in (True, False):
        group = made(cloud, MIX, totalTargetCapacity="2", terminateInstances=told)
        cloud.delete(MIX, group.id)

        assert len(cloud.store.of(INSTANCE)) == (0 if told else 2)


def test_a_scaling_group_starts_its_machines_with_its_configuration_and_ends_them_with_itself(cloud: Cloud) -> None:
    group = made(cloud, SCALING_GROUP, minSize=3)
    assert cloud.store.of(INSTANCE) == []
    made(cloud, CONFIGURATION, scalingGroupId=group.id)
    assert len(cloud.store.of(INSTANCE)) == 3

    cloud.delete(SCALING_GROUP, group.id)

    assert cloud.store.rows() == []
