"""What `gpufleet up` buys where spot capacity does not come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aws_cloud import front
from aws_cloud.direct import Direct
from aws_cloud.kinds_ec2 import FLEET, INSTANCE, SUBNET, TEMPLATE, VPC
from aws_life import REPOSITORY

from infra import evaluate, spec
from infra.clouds.aws.plan.model import AwsPlan
from infra.handover import Access, Environment, Handover, Store
from ops.clouds.aws import capacity, discovery
from ops.clouds.aws.account import Account
from ops.errors import CommandError
from ops.nodes.ssh import LOST


@pytest.fixture
def spot() -> AwsPlan:
    return decided("a100-spot")


def decided(stack: str) -> AwsPlan:
    found = evaluate.decide(spec.load(REPOSITORY, stack))
    assert isinstance(found, AwsPlan)
    return found


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with front.serving(tmp_path / "cloud.sqlite") as url:
        for name, value in {"ENDPOINT_URL": url, "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield Account("us-east-1")


def asked(file: Path, decided: AwsPlan, kind: str, faults: str = "") -> Direct:
    """A cloud with the gang's request, a fleet of this type."""
    group = next(group for group in decided.groups if group.name == "trainer")
    cloud = Direct.on(file, region=decided.region, tags=decided.tags, faults=faults)
    vpc = cloud.make(VPC, "vpc", cidrBlock="10.0.0.0/16")
    subnet = cloud.make(SUBNET, "nodes", vpcId=vpc.id, cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a")
    tags = [{"resourceType": "instance", "tags": {**decided.tags, **group.tags}}]
    template = cloud.make(TEMPLATE, "nodes", imageId="ami-1", instanceType=group.type, tagSpecifications=tags)
    wanted = {"launchTemplateSpecification": {"launchTemplateId": template.id, "version": "$Default"}}
    cloud.make(
        FLEET,
        "trainer-fleet",
        type=kind,
        terminateInstances=True,
        launchTemplateConfigs=[{**wanted, "overrides": [{"subnetId": subnet.id}]}],
        targetCapacitySpecification={"defaultTargetCapacityType": "spot", "totalTargetCapacity": group.count},
        tags={"gpufleet:name": "trainer-fleet"},
    )
    return cloud


def test_what_spot_does_not_give_is_bought_on_demand_once(spot: AwsPlan, tmp_path: Path, account: Account) -> None:
    cloud = asked(tmp_path / "cloud.sqlite", spot, "maintain", faults=f"capacity:{FLEET}")

    bought = list(capacity.fall_back(account, spot))
    again = list(capacity.fall_back(account, spot))

    (fleet,) = cloud.store.of(FLEET)
    target = fleet.inputs["targetCapacitySpecification"]
    assert bought == ["trainer: 0 of 4 nodes on spot; the other 4 are bought on demand"]
    assert (target["totalTargetCapacity"], target["onDemandTargetCapacity"], target["spotTargetCapacity"]) == (4, 4, 0)
    assert len(cloud.store.of(INSTANCE)) == 4
    assert again == []


def test_a_member_that_ended_of_a_gang_bought_at_once_is_told_as_lost_and_the_gang_is_renewed_whole(
    tmp_path: Path, account: Account
) -> None:
    prod = decided("a100-prod")
    cloud = asked(tmp_path / "cloud.sqlite", prod, "instant")
    victim, *others = cloud.store.of(INSTANCE)
    account.client("ec2").terminate_instances(InstanceIds=[victim.id])

    lost = next(each for each in discovery.discover(account, prod, told(prod, tmp_path)).others if each.state == LOST)
    renewed = capacity.renew(account, prod, "trainer")

    assert lost.reason.startswith("3 of 4 nodes: AWS does not replace one that has ended")
    assert "`gpufleet up a100-prod --renew trainer`" in lost.reason
    assert renewed == "trainer: 3 of 4 nodes terminated, all of them are requested again"
    assert {cloud.store.rows("id = ?", each.id)[0].state for each in others} == {"terminated"}


@pytest.mark.parametrize("group", ["head", "nobody"])
def test_only_a_gang_bought_at_once_can_be_renewed(account: Account, group: str) -> None:
    with pytest.raises(CommandError, match=f"--renew {group}: is not a group that is bought at once; .* has trainer"):
        capacity.renew(account, decided("a100-prod"), group)


def told(prod: AwsPlan, folder: Path) -> Handover:
    """What its nodes are discovered for."""
    return Handover(
        stack=prod.stack,
        cloud="aws",
        region=prod.region,
        access=Access(user="ubuntu", key_file="/k", known_hosts_file=str(folder / "known_hosts")),
        nodes=(),
        groups=(),
        storage=(),
        store=Store(host="head", address="10.40.0.4"),
        environment=Environment(python="/p"),
    )
