"""What `gpufleet up` buys where spot capacity does not come."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cloud import front
from aws_cloud.direct import Direct
from aws_cloud.kinds_ec2 import FLEET, INSTANCE, SUBNET, TEMPLATE, VPC
from aws_life import REPOSITORY

from infra import plan, spec
from infra.plan.aws import AwsPlan
from ops.aws import capacity
from ops.aws.account import Account


@pytest.fixture
def spot() -> AwsPlan:
    decided = plan.decide(spec.load(REPOSITORY, "a100-spot"))
    assert isinstance(decided, AwsPlan)
    return decided


def starved(file: Path, decided: AwsPlan) -> Direct:
    """A cloud with the gang's request and nothing for it."""
    group = next(group for group in decided.groups if group.name == "trainer")
    cloud = Direct.on(file, region=decided.region, tags=decided.tags, faults=f"capacity:{FLEET}")
    vpc = cloud.make(VPC, "vpc", cidrBlock="10.0.0.0/16")
    subnet = cloud.make(SUBNET, "nodes", vpcId=vpc.id, cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a")
    tags = [{"resourceType": "instance", "tags": {**decided.tags, **group.tags}}]
    template = cloud.make(TEMPLATE, "nodes", imageId="ami-1", instanceType=group.type, tagSpecifications=tags)
    wanted = {"launchTemplateSpecification": {"launchTemplateId": template.id, "version": "$Default"}}
    cloud.make(
        FLEET,
        "trainer-fleet",
        type="maintain",
        launchTemplateConfigs=[{**wanted, "overrides": [{"subnetId": subnet.id}]}],
        targetCapacitySpecification={"defaultTargetCapacityType": "spot", "totalTargetCapacity": group.count},
        tags={"gpufleet:name": "trainer-fleet"},
    )
    return cloud


def test_what_spot_does_not_give_is_bought_on_demand_once(
    spot: AwsPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = starved(tmp_path / "cloud.sqlite", spot)
    with front.serving(tmp_path / "cloud.sqlite") as url:
        for name, value in {"ENDPOINT_URL": url, "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        account = Account(spot.region)

        bought = list(capacity.fall_back(account, spot))
        again = list(capacity.fall_back(account, spot))

    (fleet,) = cloud.store.of(FLEET)
    target = fleet.inputs["targetCapacitySpecification"]
    assert bought == ["trainer: 0 of 4 nodes on spot; the other 4 are bought on demand"]
    assert (target["totalTargetCapacity"], target["onDemandTargetCapacity"], target["spotTargetCapacity"]) == (4, 4, 0)
    assert len(cloud.store.of(INSTANCE)) == 4
    assert again == []
