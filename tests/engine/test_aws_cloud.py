"""The stand-in for AWS behaves as AWS and its provider do, where deployments depend on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cloud.direct import AbortedError, Direct
from aws_cloud.kinds_ec2 import FLEET, INSTANCE, INTERFACE, SUBNET, TEMPLATE, VOLUME, VPC
from aws_cloud.kinds_services import BUCKET, OBJECT, SCALING_GROUP
from cloud_provider.store import Row

GROUP, RULE = "aws:ec2/securityGroup:SecurityGroup", "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
ROLE, POLICY = "aws:iam/role:Role", "aws:iam/rolePolicy:RolePolicy"
TABLE, ROUTE = "aws:ec2/routeTable:RouteTable", "aws:ec2/route:Route"
TAGS = {"gpufleet:stack": "tried"}


@pytest.fixture
def aws(tmp_path: Path) -> Direct:
    return Direct.on(tmp_path / "cloud.sqlite", tags=TAGS)


@pytest.fixture
def vpc(aws: Direct) -> Row:
    return aws.make(VPC, "vpc", cidrBlock="10.0.0.0/16")


@pytest.fixture
def subnet(aws: Direct, vpc: Row) -> Row:
    return aws.make(SUBNET, "nodes", vpcId=vpc.id, cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a")


@pytest.fixture
def template(aws: Direct, subnet: Row) -> Row:
    made = {"resourceType": "instance", "tags": {"gpufleet:stack": "tried", "gpufleet:group": "nodes"}}
    return aws.make(
        TEMPLATE,
        "nodes",
        imageId="ami-1",
        instanceType="p4d.24xlarge",
        networkInterfaces=[{"networkCardIndex": 0}, {"networkCardIndex": 1, "interfaceType": "efa-only"}],
        blockDeviceMappings=[{"deviceName": "/dev/sda1", "ebs": {"volumeSize": 100}}],
        tagSpecifications=[made, {**made, "resourceType": "volume"}],
    )


def gang(aws: Direct, template: Row, subnet: Row, count: int, **more: Any) -> Row:
    specification = {"launchTemplateId": template.id, "version": "$Default"}
    return aws.make(
        FLEET,
        "nodes",
        launchTemplateConfigs=[{"launchTemplateSpecification": specification, "overrides": [{"subnetId": subnet.id}]}],
        targetCapacitySpecification={"defaultTargetCapacityType": "on-demand", "totalTargetCapacity": count},
        **{"terminateInstances": True, **more},
    )


def running(aws: Direct) -> list[Row]:
    return [row for row in aws.store.of(INSTANCE) if row.state == "running"]


def test_a_subnet_that_overlaps_another_is_refused(aws: Direct, subnet: Row) -> None:
    with pytest.raises(AbortedError, match=r"InvalidSubnet\.Conflict"):
        aws.make(SUBNET, "more", vpcId=subnet.inputs["vpcId"], cidrBlock="10.0.0.128/25")


def test_a_subnet_outside_its_network_is_refused(aws: Direct, vpc: Row) -> None:
    with pytest.raises(AbortedError, match=r"InvalidSubnet\.Range"):
        aws.make(SUBNET, "more", vpcId=vpc.id, cidrBlock="10.1.0.0/24")


def test_an_id_that_does_not_exist_is_refused(aws: Direct) -> None:
    with pytest.raises(AbortedError, match=r"InvalidVpcID\.NotFound"):
        aws.make(GROUP, "nodes", vpcId="vpc-00123456789abcdef")


def test_a_name_that_is_taken_is_refused(aws: Direct) -> None:
    aws.make(ROLE, "nodes", name="nodes", assumeRolePolicy="{}")
    with pytest.raises(AbortedError, match="EntityAlreadyExists"):
        aws.make(ROLE, "others", name="nodes", assumeRolePolicy="{}")


def test_what_is_in_use_cannot_be_deleted(aws: Direct, subnet: Row) -> None:
    (vpc,) = aws.store.of(VPC)
    with pytest.raises(AbortedError, match=f"DependencyViolation: {vpc.id} has a dependent object: {subnet.id}"):
        aws.delete(vpc)


def test_what_is_part_of_a_resource_goes_with_it(aws: Direct, vpc: Row) -> None:
    group = aws.make(GROUP, "nodes", vpcId=vpc.id)
    aws.make(RULE, "to-itself", securityGroupId=group.id, ipProtocol="-1", referencedSecurityGroupId=group.id)
    aws.delete(group)
    assert aws.store.of(RULE) == []


def test_a_bucket_that_holds_something_cannot_be_deleted_unless_told_so(aws: Direct) -> None:
    kept, dropped = (aws.make(BUCKET, name, forceDestroy=name == "dropped") for name in ("kept", "dropped"))
    for bucket in (kept, dropped):
        aws.make(OBJECT, "bundle", bucket=bucket.id, key="bundle.tar")
    with pytest.raises(AbortedError, match="BucketNotEmpty"):
        aws.delete(kept)
    aws.delete(dropped)
    assert [row.id for row in aws.store.of(OBJECT)] == [f"{kept.id}/bundle.tar"]


def test_default_tags_join_the_resources_own(aws: Direct) -> None:
    vpc = aws.make(VPC, "vpc", cidrBlock="10.0.0.0/16", tags={"Name": "vpc"})
    _, inputs, properties = aws.read(VPC, vpc.id)
    assert inputs["tags"] == {"Name": "vpc"}
    assert properties["tagsAll"] == {"Name": "vpc", **TAGS}


def test_a_made_up_name_is_kept_and_one_of_an_import_is_not(aws: Direct) -> None:
    role = {"assumeRolePolicy": "{}"}
    first = aws.checked(ROLE, "nodes", {}, role)
    kept = aws.checked(ROLE, "nodes", first, role, seed=b"another")
    imported = aws.checked(ROLE, "nodes", {**first, "__defaults": []}, role, seed=b"another")
    assert first["name"] == kept["name"] == "nodes-0123456"
    assert imported["name"] != first["name"]


def test_a_change_of_what_is_fixed_makes_a_new_resource(aws: Direct, vpc: Row) -> None:
    assert aws.difference(vpc, cidrBlock="10.8.0.0/16") == (["cidrBlock"], ["cidrBlock"])
    assert aws.difference(vpc, enableDnsSupport=True) == (["enableDnsSupport"], [])


def test_a_fleet_starts_machines_with_the_tags_of_its_template(aws: Direct, template: Row, subnet: Row) -> None:
    fleet = gang(aws, template, subnet, 3)
    machines = running(aws)
    assert [machine.tags["aws:ec2:fleet-id"] for machine in machines] == [fleet.id] * 3
    assert {machine.tags["gpufleet:group"] for machine in machines} == {"nodes"}
    assert [machine.outputs["privateIp"] for machine in machines] == ["10.0.0.4", "10.0.0.5", "10.0.0.6"]
    assert {row.tags["gpufleet:group"] for row in aws.store.of(VOLUME)} == {"nodes"}
    assert [row.outputs["privateIp"] for row in aws.store.of(INTERFACE)].count("") == 3


def test_a_fleet_ends_its_machines_with_it(aws: Direct, template: Row, subnet: Row) -> None:
    aws.delete(gang(aws, template, subnet, 3))
    assert {row.state for row in aws.store.of(INSTANCE)} == {"terminated"}
    assert aws.store.of(VOLUME) == aws.store.of(INTERFACE) == []


def test_a_fleet_that_is_not_told_to_leaves_its_machines_running(aws: Direct, template: Row, subnet: Row) -> None:
    aws.delete(gang(aws, template, subnet, 3, terminateInstances=False))
    assert len(running(aws)) == 3
    with pytest.raises(AbortedError, match="DependencyViolation"):
        aws.delete(subnet)


def test_a_one_shot_fleet_cannot_be_changed(aws: Direct, template: Row, subnet: Row) -> None:
    fleet = gang(aws, template, subnet, 3, type="instant")
    target = {**fleet.inputs["targetCapacitySpecification"], "totalTargetCapacity": 5}
    with pytest.raises(AbortedError, match="UnsupportedOperation"):
        aws.change(fleet, targetCapacitySpecification=target)
    aws.change(fleet, tags={"Name": "nodes"})


@pytest.mark.parametrize("count", [1, 5])
def test_a_fleet_that_lasts_follows_its_count(aws: Direct, template: Row, subnet: Row, count: int) -> None:
    fleet = gang(aws, template, subnet, 3)
    target = {**fleet.inputs["targetCapacitySpecification"], "totalTargetCapacity": count}
    aws.change(fleet, targetCapacitySpecification=target)
    assert len({machine.outputs["privateIp"] for machine in running(aws)}) == len(running(aws)) == count


def test_a_subnet_without_free_addresses_takes_no_more_machines(aws: Direct, template: Row, subnet: Row) -> None:
    with pytest.raises(AbortedError, match="InsufficientFreeAddressesInSubnet"):
        gang(aws, template, subnet, 252)
    assert aws.store.of(INSTANCE) == []


def test_a_fleet_that_no_capacity_is_left_for_is_made_without_machines(
    tmp_path: Path, aws: Direct, template: Row, subnet: Row
) -> None:
    starved = Direct.on(tmp_path / "cloud.sqlite", faults=f"capacity:{FLEET}")
    assert gang(starved, template, subnet, 3).outputs["fulfilledCapacity"] == 0
    assert running(aws) == []


def test_a_scaling_group_spreads_its_machines_over_its_subnets(
    aws: Direct, vpc: Row, template: Row, subnet: Row
) -> None:
    other = aws.make(SUBNET, "more", vpcId=vpc.id, cidrBlock="10.0.1.0/24", availabilityZone="us-east-1b")
    aws.make(
        SCALING_GROUP,
        "serve",
        minSize=2,
        maxSize=6,
        vpcZoneIdentifiers=[subnet.id, other.id],
        launchTemplate={"id": template.id, "version": "$Default"},
    )
    assert {machine.outputs["availabilityZone"] for machine in running(aws)} == {"us-east-1a", "us-east-1b"}


def test_a_new_version_of_a_template_becomes_the_default_only_when_told(aws: Direct, template: Row) -> None:
    seen = []
    for told in (False, True):
        aws.change(template, instanceType="p5.48xlarge", updateDefaultVersion=told)
        (now,) = aws.store.of(TEMPLATE)
        seen.append((now.outputs["latestVersion"], now.outputs["defaultVersion"]))
    assert seen == [(2, 1), (3, 3)]


def test_a_missing_permission_is_told_in_awss_words(tmp_path: Path) -> None:
    aws = Direct.on(tmp_path / "cloud.sqlite", faults=f"fail:{VPC}")
    with pytest.raises(AbortedError, match=r"creating Vpc \(vpc\): api error UnauthorizedOperation"):
        aws.make(VPC, "vpc", cidrBlock="10.0.0.0/16")
    assert aws.store.rows() == []


def test_a_fault_that_is_misspelt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'loose:x' is not"):
        Direct.on(tmp_path / "cloud.sqlite", faults="loose:x")


def test_what_is_gone_is_not_found(aws: Direct, vpc: Row) -> None:
    aws.delete(vpc)
    assert aws.read(VPC, vpc.id)[0] == ""


def test_an_import_brings_what_the_api_tells(aws: Direct) -> None:
    bucket = aws.make(BUCKET, "data", forceDestroy=True)
    id_, inputs, properties = aws.read(BUCKET, bucket.id)
    assert (id_, inputs) == (bucket.id, {"bucket": bucket.id, "__defaults": []})
    assert "forceDestroy" not in properties


def test_a_refresh_keeps_what_no_api_tells(aws: Direct) -> None:
    bucket = aws.make(BUCKET, "data", forceDestroy=True)
    state = {"bucket": bucket.id, "forceDestroy": True}
    _, inputs, properties = aws.read(BUCKET, bucket.id, {**state, "__defaults": ["bucket"]}, state)
    assert inputs == {**state, "__defaults": ["bucket"]}
    assert properties["forceDestroy"] is True


def _route(aws: Direct, vpc: Row) -> tuple[str, str, str]:
    table = aws.make(TABLE, "routes", vpcId=vpc.id)
    gateway = aws.make("aws:ec2/internetGateway:InternetGateway", "internet", vpcId=vpc.id)
    route = aws.make(ROUTE, "out", routeTableId=table.id, destinationCidrBlock="0.0.0.0/0", gatewayId=gateway.id)
    return ROUTE, f"{table.id}_0.0.0.0/0", route.id


def _association(aws: Direct, vpc: Row) -> tuple[str, str, str]:
    kind = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    table = aws.make(TABLE, "routes", vpcId=vpc.id)
    subnet = aws.make(SUBNET, "nodes", vpcId=vpc.id, cidrBlock="10.0.0.0/24")
    return kind, f"{subnet.id}/{table.id}", aws.make(kind, "routed", subnetId=subnet.id, routeTableId=table.id).id


def _policy(aws: Direct, vpc: Row) -> tuple[str, str, str]:
    role = aws.make(ROLE, "nodes", assumeRolePolicy="{}")
    made = aws.make(POLICY, "may", role=role.id, policy="{}")
    return POLICY, f"{role.id}:{made.inputs['name']}", made.id


def _setting(aws: Direct, vpc: Row) -> tuple[str, str, str]:
    kind, bucket = "aws:s3/bucketPolicy:BucketPolicy", aws.make(BUCKET, "data")
    return kind, bucket.id, aws.make(kind, "tls", bucket=bucket.id, policy="{}").id


def _target(aws: Direct, vpc: Row) -> tuple[str, str, str]:
    kind = "aws:cloudwatch/eventTarget:EventTarget"
    rule = aws.make("aws:cloudwatch/eventRule:EventRule", "health", eventPattern="{}")
    made = aws.make(kind, "to-queue", rule=rule.id, arn="arn:aws:sqs:us-east-1:123456789012:queue", targetId="queue")
    return kind, f"{rule.id}/queue", made.id


def _object(aws: Direct, vpc: Row) -> tuple[str, str, str]:
    bucket = aws.make(BUCKET, "data")
    return OBJECT, f"s3://{bucket.id}/a/b.tar", aws.make(OBJECT, "bundle", bucket=bucket.id, key="a/b.tar").id


@pytest.mark.parametrize("made", [_route, _association, _policy, _setting, _target, _object])
def test_what_has_no_tags_is_imported_by_what_it_is_made_of(
    aws: Direct, vpc: Row, made: Callable[[Direct, Row], tuple[str, str, str]]
) -> None:
    kind, name, id_ = made(aws, vpc)
    assert aws.read(kind, name)[0] == id_


def test_an_image_that_aws_publishes_is_the_same_each_time(aws: Direct) -> None:
    from aws_cloud.images import parameter

    name = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"
    first, again, elsewhere = (parameter(name, region)["value"] for region in ("us-east-1", "us-east-1", "eu-west-1"))
    assert first == again != elsewhere
