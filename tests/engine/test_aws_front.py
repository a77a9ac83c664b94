"""The real boto3 speaks to the stand-in for AWS as it would to AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from aws_cloud import front
from aws_cloud.direct import Direct
from aws_cloud.kinds import ACCOUNT
from aws_cloud.kinds_ec2 import FLEET, INSTANCE, RESERVATION, SUBNET, TEMPLATE, VPC
from botocore.exceptions import ClientError

STACK = {"Key": "gpufleet:stack", "Values": ["tried"]}
Client = Callable[..., Any]


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Direct:
    """A network with a gang of three machines."""
    made = Direct.on(tmp_path_factory.mktemp("aws") / "cloud.sqlite", tags={"gpufleet:stack": "tried"})
    vpc = made.make(VPC, "vpc", cidrBlock="10.0.0.0/16")
    subnet = made.make(SUBNET, "nodes", vpcId=vpc.id, cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a")
    tagged = [{"resourceType": "instance", "tags": {"gpufleet:stack": "tried"}}]
    template = made.make(TEMPLATE, "nodes", imageId="ami-1", instanceType="g5.xlarge", tagSpecifications=tagged)
    config = {
        "launchTemplateSpecification": {"launchTemplateId": template.id, "version": "$Default"},
        "overrides": [{"subnetId": subnet.id}],
    }
    made.make(
        FLEET,
        "nodes",
        type="maintain",
        launchTemplateConfigs=[config],
        targetCapacitySpecification={"defaultTargetCapacityType": "spot", "totalTargetCapacity": 3},
    )
    made.make("aws:iam/role:Role", "nodes", assumeRolePolicy="{}")
    return made


@pytest.fixture(scope="module")
def client(aws: Direct) -> Iterator[Client]:
    file = Path(aws.store.db.execute("pragma database_list").fetchone()[2])
    with front.serving(file) as url:
        keys = {"aws_access_key_id": "tests", "aws_secret_access_key": "tests"}
        yield lambda service, region="us-east-1": boto3.client(service, region_name=region, endpoint_url=url, **keys)


def test_the_caller_is_the_account(client: Client) -> None:
    assert client("sts").get_caller_identity()["Account"] == ACCOUNT


def test_resources_are_found_by_their_tags_page_after_page(aws: Direct, client: Client) -> None:
    pages = client("resourcegroupstaggingapi").get_paginator("get_resources")
    found = [*pages.paginate(TagFilters=[STACK], ResourcesPerPage=2)]
    arns = [resource["ResourceARN"] for page in found for resource in page["ResourceTagMappingList"]]
    assert len(found) > 3
    assert sorted(arns) == sorted(
        row.arn for row in aws.store.rows("arn != '' and tags != '{}'") if "role" not in row.arn
    )


def test_resources_of_another_region_are_not_found(client: Client) -> None:
    answer = client("resourcegroupstaggingapi", "eu-west-1").get_resources(TagFilters=[STACK])
    assert answer["ResourceTagMappingList"] == []


def test_machines_are_found_by_tag_and_state(aws: Direct, client: Client) -> None:
    by = [{"Name": "tag:gpufleet:stack", "Values": ["tried"]}, {"Name": "instance-state-name", "Values": ["running"]}]
    (reservation, *_) = client("ec2").describe_instances(Filters=by)["Reservations"]
    (machine,) = reservation["Instances"]
    (row,) = aws.store.rows("id = ?", machine["InstanceId"])
    assert machine["PrivateIpAddress"] == row.outputs["privateIp"]
    assert {"Key": "gpufleet:stack", "Value": "tried"} in machine["Tags"]


def test_a_machine_says_on_its_console_what_a_test_lets_it_say(aws: Direct, client: Client) -> None:
    machine = next(row for row in aws.store.of(INSTANCE) if row.state == "running")
    asked = {"InstanceId": machine.id, "Latest": True}
    assert client("ec2").get_console_output(**asked)["Output"] == ""
    aws.store.put([replace(machine, outputs={**machine.outputs, "console": "ssh-ed25519 AAAA"})])
    assert client("ec2").get_console_output(**asked)["Output"] == "ssh-ed25519 AAAA"


def test_a_machine_of_a_lasting_fleet_that_is_ended_is_replaced(aws: Direct, client: Client) -> None:
    first = aws.store.of(INSTANCE)[0]
    client("ec2").terminate_instances(InstanceIds=[first.id])
    assert [row.id for row in aws.store.of(INSTANCE) if row.state == "terminated"] == [first.id]
    assert len(aws.store.rows("type = ? and state = 'running'", INSTANCE)) == 3


def test_roles_are_found_by_listing_them(client: Client) -> None:
    (role,) = client("iam").list_roles(PathPrefix="/")["Roles"]
    told = client("iam").list_role_tags(RoleName=role["RoleName"])["Tags"]
    assert {"Key": "gpufleet:stack", "Value": "tried"} in told


def test_what_aws_offers_is_told(client: Client) -> None:
    zone = [{"Name": "zone-name", "Values": ["us-east-1a"]}]
    (found,) = client("ec2").describe_availability_zones(Filters=zone)["AvailabilityZones"]
    image = client("ssm").get_parameter(Name="/aws/service/x/image_id")["Parameter"]["Value"]
    (told,) = client("ec2").describe_images(ImageIds=[image])["Images"]
    quota = client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-1216C47A")["Quota"]
    assert (found["State"], told["State"], quota["QuotaCode"]) == ("available", "available", "L-1216C47A")


def test_reserved_capacity_is_what_was_put_there(aws: Direct, client: Client) -> None:
    ask = client("ec2").describe_capacity_reservations
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        ask(CapacityReservationIds=["cr-0123456789abcdef0"])
    how = {"availabilityZone": "us-east-1a", "instancePlatform": "Linux/UNIX", "instanceType": "g5.xlarge"}
    held = aws.make(RESERVATION, "held", instanceCount=4, **how)
    (told,) = ask(CapacityReservationIds=[held.id])["CapacityReservations"]
    assert (told["InstanceType"], told["AvailableInstanceCount"]) == ("g5.xlarge", 4)


def test_what_does_not_exist_is_the_services_own_error(client: Client) -> None:
    with pytest.raises(ClientError) as unknown:
        client("ec2").terminate_instances(InstanceIds=["i-0123"])
    assert unknown.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"
    kms = client("kms")
    with pytest.raises(kms.exceptions.NotFoundException):
        kms.describe_key(KeyId="nowhere")


def test_a_filter_that_ec2_does_not_have_is_refused(client: Client) -> None:
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        client("ec2").describe_instances(Filters=[{"Name": "tagg:x", "Values": ["y"]}])


def test_a_call_that_the_stand_in_does_not_answer_says_so(client: Client) -> None:
    with pytest.raises(ClientError, match="does not answer ec2 DescribeVolumes"):
        client("ec2").describe_volumes()
