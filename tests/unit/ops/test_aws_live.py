"""What a stack file takes for granted is asked of AWS before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from infra.clouds.aws.plan.eks_model import EksPlan
from infra.clouds.aws.plan.model import AwsPlan
from infra.evaluate import decide
from infra.plan.model import Finding
from infra.spec import load
from ops.clouds.aws import account_checks
from ops.clouds.aws.account import GLOBAL_REGION, Account
from ops.errors import CommandError

REPOSITORY = Path(__file__).resolve().parents[3]
REGION, ZONE = "us-east-1", "us-east-1d"
RESERVATION = "cr-0123456789abcdef0"
OFFERING = "cb-0123456789abcdef0"
CLUSTER = """
config:
  gpufleet:cluster:
    cloud: aws
    region: us-east-1
    zone: us-east-1d
    network: {{cidr: 10.40.0.0/16}}
    access: {{ssm: true}}
    images: {{x86_64: ami-0123456789abcdef0}}
    nodes: [{{name: trainer, type: {type}, count: 4, market: {market}}}]
"""
HELD: dict[str, Any] = {
    "CapacityReservationId": RESERVATION,
    "InstanceType": "p4d.24xlarge",
    "AvailabilityZone": ZONE,
    "InstancePlatform": "Linux/UNIX",
    "Tenancy": "default",
    "State": "active",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 4,
    "ReservationType": "default",
}
OFFER: dict[str, Any] = {
    "CapacityBlockOfferingId": OFFERING,
    "InstanceType": "p5.48xlarge",
    "InstanceCount": 4,
    "AvailabilityZone": ZONE,
    "UpfrontFee": "39000.00",
    "CurrencyCode": "USD",
}
FLEET_ROLE: dict[str, Any] = {
    "RoleName": "AWSServiceRoleForEC2Fleet",
    "Arn": "arn:aws:iam::111122223333:role/aws-service-role/ec2fleet.amazonaws.com/AWSServiceRoleForEC2Fleet",
    "Path": "/aws-service-role/ec2fleet.amazonaws.com/",
    "RoleId": "AROAEXAMPLEEXAMPLE",
    "CreateDate": datetime(2026, 1, 1, tzinfo=UTC),
}
EKS = EksPlan(
    name="x",
    version="1.35",
    admins=(),
    api_from=(),
    subnets=(),
    security_group="",
    log_retention_days=30,
    addons=(),
    tenant=None,
)
PURCHASE = f"{{kind: block, buy: {{offering: {OFFERING}, hours: 48, usd_at_most: 40000}}}}"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., AwsPlan]:
    def of(market: str = "{kind: on-demand}", kind: str = "p4d.24xlarge") -> AwsPlan:
        (tmp_path / "stacks").mkdir(exist_ok=True)
        (tmp_path / "Pulumi.yaml").write_text((REPOSITORY / "Pulumi.yaml").read_text())
        (tmp_path / "stacks" / "Pulumi.x.yaml").write_text(CLUSTER.format(type=kind, market=market))
        plan = decide(load(tmp_path, "x"))
        assert isinstance(plan, AwsPlan)
        return plan

    return of


def answered(plan: AwsPlan, **responses: Any) -> tuple[Finding, ...]:
    """The findings where AWS answers as a sound account would, but for what is given. botocore checks each answer."""
    account, kind = Account(REGION), plan.groups[0].type
    ec2, quotas = Stubber(account.client("ec2")), Stubber(account.client("service-quotas"))
    iam = Stubber(account.client("iam", GLOBAL_REGION))
    zone = {"ZoneName": ZONE, "ZoneId": "use1-az6", "State": "available", "OptInStatus": "opt-in-not-required"}
    ec2.add_response(
        "describe_availability_zones", {"AvailabilityZones": [zone | responses.get("zone", {})]}, ANY_OF_IT
    )
    offers = [{"InstanceType": kind, "Location": where} for where in responses.get("offered_in", [ZONE])]
    ec2.add_response("describe_instance_type_offerings", {"InstanceTypeOfferings": offers}, ANY_OFFER)
    image = {"ImageId": "ami-0123456789abcdef0", "State": "available", "Architecture": "x86_64"}
    ec2.add_response(
        "describe_images", {"Images": [image | responses.get("image", {})]}, {"ImageIds": [image["ImageId"]]}
    )
    if "held" in responses:
        ec2.add_response(
            "describe_capacity_reservations",
            {"CapacityReservations": [HELD | responses["held"]]},
            {"CapacityReservationIds": [RESERVATION]},
        )
    if "offers" in responses:
        bought = {"CapacityReservations": [HELD] if responses.get("bought") else []}
        ec2.add_response("describe_capacity_reservations", bought, {"Filters": ANY})
        if not responses.get("bought"):
            query = {"InstanceType": kind, "InstanceCount": 4, "CapacityDurationHours": 48}
            ec2.add_response(
                "describe_capacity_block_offerings", {"CapacityBlockOfferings": responses["offers"]}, query
            )
    if plan.groups[0].market.kind in ("on-demand", "spot"):
        quota = {"QuotaName": "Running On-Demand P instances", "Value": responses.get("vcpus", 384.0)}
        quotas.add_response("get_service_quota", {"Quota": quota}, {"ServiceCode": "ec2", "QuotaCode": ANY})
    if plan.groups[0].market.kind == "spot":
        if responses.get("fleets_role", True):
            iam.add_response("get_role", {"Role": FLEET_ROLE}, {"RoleName": FLEET_ROLE["RoleName"]})
        else:
            iam.add_client_error("get_role", "NoSuchEntity", "it cannot be found")
    with ec2, quotas, iam:
        findings = account_checks.findings(account, plan)
        ec2.assert_no_pending_responses()
        quotas.assert_no_pending_responses()
        iam.assert_no_pending_responses()
    return findings


ANY_OF_IT = {"Filters": ANY, "AllAvailabilityZones": True}
ANY_OFFER = {"LocationType": "availability-zone", "Filters": ANY}


def messages(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.path, finding.message) for finding in findings]


def test_nothing_is_said_of_what_is_as_it_should_be(planned: Callable[..., AwsPlan]) -> None:
    reserved = planned(f"{{kind: reservation, id: {RESERVATION}}}")

    assert answered(planned()) == ()
    assert answered(reserved, held={}) == ()
    assert answered(planned("{kind: spot}")) == ()


def test_a_zone_that_the_account_has_not_opted_in_to(planned: Callable[..., AwsPlan]) -> None:
    assert messages(answered(planned(), zone={"OptInStatus": "not-opted-in"})) == [
        ("error", "cluster.zone", "this account has not opted in to us-east-1d")
    ]


def test_a_type_that_only_other_zones_have(planned: Callable[..., AwsPlan]) -> None:
    ((level, path, message),) = messages(answered(planned(), offered_in=["us-east-1a", "us-east-1c"]))

    assert (level, path) == ("error", "cluster.nodes[0].type")
    assert message == "us-east-1d does not have p4d.24xlarge, only us-east-1a, us-east-1c"


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({"State": "deregistered"}, "ami-0123456789abcdef0 is deregistered"),
        ({"Architecture": "arm64"}, "ami-0123456789abcdef0 is for arm64"),
        ({"BootMode": "uefi"}, "ami-0123456789abcdef0 boots by uefi, and p4d.24xlarge by legacy-bios only"),
    ],
)
def test_an_image_that_is_gone_or_for_another_machine(
    planned: Callable[..., AwsPlan], image: dict[str, str], message: str
) -> None:
    assert messages(answered(planned(), image=image)) == [("error", "cluster.images.x86_64", message)]


@pytest.mark.parametrize(
    ("held", "level", "message"),
    [
        ({"InstanceType": "p5.48xlarge"}, "error", "its type is p5.48xlarge, and the nodes' p4d.24xlarge"),
        ({"AvailabilityZone": "us-east-1a"}, "error", "its zone is us-east-1a, and the nodes' us-east-1d"),
        ({"InstancePlatform": "Windows"}, "error", "its platform is Windows, and the nodes' Linux/UNIX"),
        ({"ReservationType": "capacity-block"}, "error", "its kind is capacity-block, and the nodes' default"),
        ({"State": "expired"}, "error", "it is expired"),
        (
            {"State": "scheduled", "StartDate": datetime(2026, 12, 1, 11, 30, tzinfo=UTC)},
            "warning",
            "it starts at 2026-12-01 11:30 UTC: nodes start then",
        ),
        ({"TotalInstanceCount": 3, "AvailableInstanceCount": 3}, "error", "it holds 3 nodes, and the group has 4"),
        ({"AvailableInstanceCount": 1}, "warning", "1 of its 4 nodes are free, unless this stack uses the others"),
    ],
)
def test_a_reservation_that_does_not_fit_the_nodes(
    planned: Callable[..., AwsPlan], held: dict[str, Any], level: str, message: str
) -> None:
    reserved = planned(f"{{kind: reservation, id: {RESERVATION}}}")

    assert messages(answered(reserved, held=held)) == [(level, "cluster.nodes[0].market.id", message)]


def test_a_placement_group_that_the_reservation_was_made_in_and_nobody_named(planned: Callable[..., AwsPlan]) -> None:
    arn = "arn:aws:ec2:us-east-1:111122223333:placement-group/held"

    findings = answered(planned(f"{{kind: reservation, id: {RESERVATION}}}"), held={"PlacementGroupArn": arn})

    assert [finding.message for finding in findings] == [f"its placement group is {arn}, and the nodes' none"]


def test_a_quota_that_the_stack_alone_exceeds(planned: Callable[..., AwsPlan]) -> None:
    ((_, path, message),) = messages(answered(planned(), vcpus=383.0))

    assert path == "cluster.nodes[0].type"
    assert message == ("384 vCPUs exceed the quota `Running On-Demand P instances` (383); request an increase from AWS")


def test_spot_nodes_are_started_by_a_role_that_the_account_must_have(planned: Callable[..., AwsPlan]) -> None:
    ((level, path, message),) = messages(answered(planned("{kind: spot}"), fleets_role=False))

    assert (level, path) == ("error", "cluster.nodes[0].market")
    assert "`aws iam create-service-linked-role --aws-service-name ec2fleet.amazonaws.com`" in message


def test_a_zone_where_eks_has_no_control_plane(planned: Callable[..., AwsPlan]) -> None:
    plan, account = planned(), Account(REGION)
    zone = {"ZoneName": ZONE, "ZoneId": "use1-az3", "State": "available", "OptInStatus": "opt-in-not-required"}
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_response("describe_availability_zones", {"AvailabilityZones": [zone]}, ANY_OF_IT)
        (finding,) = account_checks._zones(account, replace(plan, eks=EKS))

    assert finding.message.startswith("us-east-1d is use1-az3 in this account, where EKS has no control plane")


def test_an_offer_is_looked_up_before_it_is_bought(planned: Callable[..., AwsPlan]) -> None:
    plan = planned(PURCHASE, "p5.48xlarge")

    assert answered(plan, offers=[OFFER]) == ()
    assert [finding.message for finding in answered(plan, offers=[])] == [
        "AWS no longer has this offer for 4 × p5.48xlarge"
    ]
    assert [finding.message for finding in answered(plan, offers=[OFFER | {"UpfrontFee": "40000.01"}])] == [
        "the offer costs 40000.01 USD"
    ]
    assert [finding.message for finding in answered(plan, offers=[OFFER | {"AvailabilityZone": "us-east-1a"}])] == [
        "the offer is in us-east-1a; put the nodes in that zone"
    ]


def test_an_offer_that_was_bought_is_not_looked_for(planned: Callable[..., AwsPlan]) -> None:
    assert answered(planned(PURCHASE, "p5.48xlarge"), offers=[], bought=True) == ()


def test_a_reservation_that_is_not_there_is_a_finding(planned: Callable[..., AwsPlan]) -> None:
    plan = planned(f"{{kind: reservation, id: {RESERVATION}}}")
    account = Account(REGION)
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_client_error("describe_capacity_reservations", "InvalidCapacityReservationId.NotFound", "not there")
        findings = list(account_checks._reservations(account, plan))

    assert messages(tuple(findings)) == [("error", "cluster.nodes[0].market.id", "not there")]


def test_a_refusal_of_aws_is_one_line(planned: Callable[..., AwsPlan]) -> None:
    account, plan = Account(REGION), planned()
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_client_error("describe_availability_zones", "UnauthorizedOperation", "You are not authorized")
        with pytest.raises(CommandError) as failure:
            account_checks.findings(account, plan)

    assert str(failure.value) == "AWS refuses DescribeAvailabilityZones in us-east-1: You are not authorized"
