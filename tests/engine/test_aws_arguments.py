"""The stand-in for AWS takes what pulumi_aws takes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cloud.account import shipped
from aws_cloud.direct import Direct
from aws_cloud.kinds_ec2 import FLEET, SUBNET, TEMPLATE, VPC
from cloud_provider.wire import plain, wire

from infra.graph import render

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def aws(tmp_path: Path) -> Direct:
    return Direct.on(tmp_path / "cloud.sqlite")


@pytest.mark.parametrize("stack", shipped())
def test_every_resource_of_every_shipped_stack_is_taken(aws: Direct, stack: str) -> None:
    nodes = [node for node in render(REPOSITORY, stack).nodes.values() if node.type.startswith("aws:")]
    wrong = {node.urn: aws.problems(node.type, **plain(wire(node.inputs))) for node in nodes}
    assert {urn: lines for urn, lines in wrong.items() if lines} == {}
    assert len(nodes) > 30


def test_a_type_that_the_sdk_does_not_have_is_refused(aws: Direct) -> None:
    (line,) = aws.problems("aws:ec2/vpcc:Vpcc")
    assert line == "pulumi_aws 7.51.1 has no resource type aws:ec2/vpcc:Vpcc"


def test_a_type_that_the_stand_in_does_not_know_says_so(aws: Direct) -> None:
    (line,) = aws.problems("aws:sns/topic:Topic")
    assert line.startswith("the stand-in cloud does not know aws:sns/topic:Topic")


def test_an_unknown_argument_is_refused_with_the_nearest_one(aws: Direct) -> None:
    assert aws.problems(VPC, cidrBlok="10.0.0.0/16") == ["cidrBlok: unknown argument; did you mean 'cidrBlock'?"]


def test_a_missing_argument_is_refused(aws: Direct) -> None:
    assert aws.problems(SUBNET, cidrBlock="10.0.0.0/24") == ["vpcId: missing required argument"]


def test_an_unknown_argument_is_refused_however_deep_it_stands(aws: Direct) -> None:
    disk = {"deviceName": "/dev/sda1", "ebs": {"volumeSice": 100}}
    (line,) = aws.problems(TEMPLATE, blockDeviceMappings=[disk])
    assert line == "blockDeviceMappings[0].ebs.volumeSice: unknown argument; did you mean 'volumeSize'?"


def test_a_missing_argument_is_refused_however_deep_it_stands(aws: Direct) -> None:
    (line,) = aws.problems(
        FLEET,
        launchTemplateConfigs=[{"launchTemplateSpecification": {"launchTemplateId": "lt-1", "version": "1"}}],
        targetCapacitySpecification={"totalTargetCapacity": 4},
    )
    assert line == "targetCapacitySpecification.defaultTargetCapacityType: missing required argument"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tags": ["a"]}, "tags: must be a map, not ['a']"),
        ({"vpcSecurityGroupIds": "sg-1"}, "vpcSecurityGroupIds: must be a list, not 'sg-1'"),
        ({"metadataOptions": "required"}, "metadataOptions: must be a block, not 'required'"),
        ({"imageId": {"id": "ami-1"}}, "imageId: must be a single value, not {'id': 'ami-1'}"),
    ],
)
def test_an_argument_of_another_shape_is_refused(aws: Direct, given: dict, told: str) -> None:
    assert aws.problems(TEMPLATE, **given) == [told]
