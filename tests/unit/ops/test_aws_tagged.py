"""What of a stack lives in an account, and which nodes it has: asked of moto, through the calls of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from ops.clouds.aws.account import Account, answers
from ops.clouds.aws.tagged_resources import Instance, instances, resources
from ops.engine import orphans
from ops.errors import CommandError
from ops.nodes import host_keys

TAGS = {"gpufleet:stack": "prod"}
ACCOUNT = Account("eu-west-1")


def tags(**more: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in {**TAGS, **more}.items()]


def specified(kind: str, **more: str) -> list[dict]:
    return [{"ResourceType": kind, "Tags": tags(**more)}]


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        ACCOUNT.__dict__.pop("_clients", None)
        yield
    ACCOUNT.__dict__.pop("_clients", None)


@pytest.fixture
def ec2():
    return boto3.client("ec2", "eu-west-1")


def run(ec2, count: int, **more: str) -> list[str]:
    query = {"ImageId": "ami-12345678", "InstanceType": "t3.micro", "MinCount": count, "MaxCount": count}
    response = ec2.run_instances(**query, TagSpecifications=specified("instance", **more))
    return [instance["InstanceId"] for instance in response["Instances"]]


def test_what_carries_the_tags_is_found_whatever_its_service(ec2) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=specified("vpc", **{"gpufleet:name": "vpc"}))
    ec2.create_vpc(CidrBlock="10.1.0.0/16")
    key = boto3.client("kms", "eu-west-1").create_key(Tags=[{"TagKey": "gpufleet:stack", "TagValue": "prod"}])
    s3 = boto3.client("s3", "eu-west-1")
    s3.create_bucket(Bucket="data-0a1b2c3", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_bucket_tagging(Bucket="data-0a1b2c3", Tagging={"TagSet": tags()})

    tagged = {(resource.kind, resource.id, resource.name) for resource in resources(ACCOUNT, TAGS)}

    assert tagged == {
        ("ec2/vpc", vpc["Vpc"]["VpcId"], "vpc"),
        ("kms/key", key["KeyMetadata"]["KeyId"], ""),
        ("s3/bucket", "data-0a1b2c3", ""),
    }


def test_what_the_tagging_api_leaves_out_is_asked_for(ec2) -> None:
    iam, trust = boto3.client("iam"), '{"Version": "2012-10-17", "Statement": []}'
    iam.create_role(RoleName="nodes-role-0a1b2c3", AssumeRolePolicyDocument=trust, Tags=tags())
    iam.create_role(RoleName="other-role-0a1b2c3", AssumeRolePolicyDocument=trust)
    ec2.import_key_pair(
        KeyName="login-0a1b2c3",
        PublicKeyMaterial=b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB/+HV x",
        TagSpecifications=specified("key-pair"),
    )

    assert {(resource.kind, resource.id) for resource in resources(ACCOUNT, TAGS)} == {
        ("ec2/key-pair", "login-0a1b2c3"),
        ("iam/role", "nodes-role-0a1b2c3"),
    }


def test_a_key_that_waits_for_its_deletion_is_gone(ec2) -> None:
    kms = boto3.client("kms", "eu-west-1")
    key = kms.create_key(Tags=[{"TagKey": "gpufleet:stack", "TagValue": "prod"}])["KeyMetadata"]["KeyId"]
    assert [resource.id for resource in resources(ACCOUNT, TAGS)] == [key]

    kms.schedule_key_deletion(KeyId=key)

    assert resources(ACCOUNT, TAGS) == []


def test_a_terminated_instance_is_gone(ec2) -> None:
    (lost, running) = run(ec2, 2)
    ec2.terminate_instances(InstanceIds=[lost])

    assert [instance.id for instance in instances(ACCOUNT, TAGS)] == [running]
    assert [resource.id for resource in resources(ACCOUNT, TAGS) if resource.kind == "ec2/instance"] == [running]


def test_members_of_a_known_group_are_no_orphans_and_neither_are_their_disks(ec2) -> None:
    (orphan,) = run(ec2, 1)
    (known,) = run(ec2, 1)
    group = "serve-scaling"
    ec2.create_launch_template(LaunchTemplateName="template", LaunchTemplateData={"ImageId": "ami-12345678"})
    scaling = boto3.client("autoscaling", "eu-west-1")
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    template = {"LaunchTemplateName": "template", "Version": "$Default"}
    own = [{"Key": "gpufleet:stack", "Value": "prod", "PropagateAtLaunch": True}]
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=group, LaunchTemplate=template, MinSize=1, MaxSize=1, VPCZoneIdentifier=subnet, Tags=own
    )

    tagged = orphans.of(resources(ACCOUNT, TAGS), instances(ACCOUNT, TAGS), {known, group})

    assert [resource.id for resource in tagged if resource.kind == "ec2/instance"] == [orphan]


def test_a_node_of_a_managed_group_is_known_by_the_engines_id_of_the_group() -> None:
    tags = {"eks:cluster-name": "fleet", "eks:nodegroup-name": "trainer", "aws:autoscaling:groupName": "eks-trainer-1"}

    assert replace(instance("i-a", "10.0.0.7"), tags=tags).made_by == "fleet:trainer"


def test_without_credentials_one_line_says_how_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(CommandError, match=r"^AWS does not answer in eu-west-1: .*aws sts get-caller-identity"),
        answers(ACCOUNT),
    ):
        raise EndpointConnectionError(endpoint_url="https://ec2.eu-west-1.amazonaws.com")


def test_what_aws_refuses_is_one_line(ec2) -> None:
    with pytest.raises(CommandError, match=r"^AWS refuses TerminateInstances in eu-west-1: "), answers(ACCOUNT):
        ec2.terminate_instances(InstanceIds=["i-0123456789abcdef0"])


TOLD = """[  31.2] cloud-init: -----BEGIN SSH HOST KEY KEYS-----\r
ecdsa-sha2-nistp256 AAAAE2VjZHNh root@ip-10-0-0-7\r
ssh-ed25519 AAAAC3NzaC1 root@ip-10-0-0-7\r
-----END SSH HOST KEY KEYS-----\r
"""


def instance(id_: str, address: str) -> Instance:
    return Instance(id_, "running", TAGS, "ip", address, "", False, frozenset())


def test_host_keys_come_from_the_console_and_outlive_its_buffer(tmp_path: Path) -> None:
    file, machines = tmp_path / "known_hosts", [instance("i-a", "10.0.0.7"), instance("i-b", "10.0.0.8")]

    first = host_keys.learn(machines, file, {"i-a": TOLD, "i-b": "booting"}.__getitem__)
    assert first == {"i-a": "ssh-ed25519 AAAAC3NzaC1"}
    assert file.read_text() == "i-a,10.0.0.7 ssh-ed25519 AAAAC3NzaC1\n"

    later = host_keys.learn(machines, file, {"i-a": "", "i-b": TOLD}.__getitem__)
    assert later == {"i-a": "ssh-ed25519 AAAAC3NzaC1", "i-b": "ssh-ed25519 AAAAC3NzaC1"}


def test_a_new_instance_at_an_old_address_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    host_keys.learn([instance("i-a", "10.0.0.7")], file, {"i-a": TOLD}.__getitem__)

    assert host_keys.learn([instance("i-b", "10.0.0.7")], file, {"i-b": ""}.__getitem__) == {}
    assert file.read_text() == ""
