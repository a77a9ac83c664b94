"""Checks of a plan against the live AWS account, before anything is created: zones, offerings, images, reservations,
roles, quotas.

Sources: EC2 API, DescribeAvailabilityZones, DescribeInstanceTypeOfferings, DescribeImages, DescribeCapacityReservations
and DescribeCapacityBlockOfferings; EC2 User Guide, "Amazon EC2 instance type quotas" (vCPUs, one quota for a family and
a way of buying), "Amazon EC2 boot modes" and "EC2 Fleet prerequisites"; EKS User Guide, "View Amazon EKS networking
requirements for VPC and subnets".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from botocore.exceptions import ClientError

from infra.catalog import load
from infra.clouds.aws.plan.capacity import CapacityBlock, FixedSize, ManagedPool, OnDemand, Purchase, Reservation, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan, AwsPlan, ImagePlan
from infra.clouds.tags import LOGICAL_NAME
from infra.plan.model import Finding
from ops.clouds.aws.account import GLOBAL_REGION, Account, answers

LINUX = "Linux/UNIX"
WITHOUT_EKS = ("use1-az3", "usw1-az2", "cac1-az3")  # the ids of zones without a control plane
FLEET_ROLE, FLEETS = "AWSServiceRoleForEC2Fleet", "ec2fleet.amazonaws.com"
# Quotas in vCPUs: (how it is bought, how the type's name begins) -> the code of Service Quotas.
QUOTAS = {
    (OnDemand, r"p\d"): "L-417A185B",
    (OnDemand, r"g"): "L-DB2E81BA",
    (OnDemand, r"[acdhimrtz]\d"): "L-1216C47A",
    (Spot, r"p[234]"): "L-7212CCBC",
    (Spot, r"p5"): "L-C4BD4855",
    (Spot, r"g"): "L-3819A6DF",
    (Spot, r"[acdhimrtz]\d"): "L-34B43A08",
}


def findings(account: Account, plan: AwsPlan) -> tuple[Finding, ...]:
    """Errors would fail the deployment, warnings may. Raises CommandError where AWS does not answer."""
    with answers(account):
        return tuple(
            chain(
                _zones(account, plan),
                _offerings(account, plan),
                _images(account, plan),
                _reservations(account, plan),
                _purchases(account, plan),
                _roles(account, plan),
                _quotas(account, plan),
            )
        )


def _zones(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    response = account.client("ec2").describe_availability_zones(
        Filters=[{"Name": "zone-name", "Values": list(plan.zones)}], AllAvailabilityZones=True
    )
    known = {zone["ZoneName"]: zone for zone in response["AvailabilityZones"]}
    for zone in plan.zones:
        if zone not in known:
            yield _error("live-zone", "cluster.zone", f"this account has no zone {zone}")
        elif known[zone]["OptInStatus"] == "not-opted-in":
            yield _error("live-zone", "cluster.zone", f"this account has not opted in to {zone}")
        elif known[zone]["State"] != "available":
            yield _error("live-zone", "cluster.zone", f"{zone} is {known[zone]['State']}")
        elif plan.eks is not None and known[zone]["ZoneId"] in WITHOUT_EKS:
            here = f"{zone} is {known[zone]['ZoneId']} in this account"
            yield _error("live-zone", "cluster.zones", f"{here}, where EKS has no control plane; name another one")


def _offerings(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    types = sorted({group.type for group in plan.groups})
    offered = {
        (offer["InstanceType"], offer["Location"])
        for offer in account.listed(
            "ec2",
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": types}],
        )
    }
    for i, group in enumerate(plan.groups):
        elsewhere = sorted(zone for kind, zone in offered if kind == group.type)
        for zone in _zones_of(group, plan):
            if zone not in elsewhere:
                where = f"only {', '.join(elsewhere)}" if elsewhere else f"nor does any other zone of {plan.region}"
                yield _error("live-offering", f"cluster.nodes[{i}].type", f"{zone} does not have {group.type}, {where}")


def _images(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    """A recorded image must still exist; otherwise its parameter must name one. EKS has its own."""
    for image in dict.fromkeys(group.image for group in plan.groups if not isinstance(group.capacity, ManagedPool)):
        path = f"cluster.images.{image.architecture}"
        try:
            id_ = image.recorded or account.client("ssm").get_parameter(Name=image.parameter)["Parameter"]["Value"]
            (described,) = account.client("ec2").describe_images(ImageIds=[id_])["Images"] or ({},)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("ParameterNotFound", "InvalidAMIID.NotFound"):
                raise
            yield _error("live-image", path, error.response["Error"]["Message"])
            continue
        if described.get("State") != "available":
            yield _error("live-image", path, f"{id_} is {described.get('State', 'missing')}")
        elif described["Architecture"] != image.architecture:
            yield _error("live-image", path, f"{id_} is for {described['Architecture']}")
        else:
            yield from _unbootable(plan, image, described)


def _unbootable(plan: AwsPlan, image: ImagePlan, description: Mapping[str, Any]) -> Iterator[Finding]:
    """An image with one boot mode does not start on a type that has only the other."""
    mode = description.get("BootMode", "uefi-preferred")
    for type_ in dict.fromkeys(group.type for group in plan.groups if group.image == image):
        modes = load().type(type_).boot_modes
        if mode != "uefi-preferred" and modes and mode not in modes:
            message = f"{description['ImageId']} boots by {mode}, and {type_} by {' or '.join(modes)} only"
            yield _error("live-image", f"cluster.images.{image.architecture}", message)


def _reservations(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    for i, group in enumerate(plan.groups):
        market = group.market
        if isinstance(market, Reservation) or (isinstance(market, CapacityBlock) and market.purchase is None):
            path = f"cluster.nodes[{i}].market.id"
            try:
                response = account.client("ec2").describe_capacity_reservations(CapacityReservationIds=[market.id])
            except ClientError as error:
                if not error.response["Error"]["Code"].startswith("InvalidCapacityReservationId"):
                    raise
                yield _error("live-reservation", path, error.response["Error"]["Message"])
                continue
            yield from _mismatches(path, group, _zones_of(group, plan), response["CapacityReservations"][0])


def _mismatches(path: str, group: AwsGroupPlan, zones: list[str], reservation: Mapping[str, Any]) -> Iterator[Finding]:
    """Launches that do not match a reservation in all of these fail, or are billed on top of it."""
    block = isinstance(group.market, CapacityBlock)
    pairs = {
        "kind": (reservation.get("ReservationType", "default"), "capacity-block" if block else "default"),
        "type": (reservation["InstanceType"], group.type),
        "zone": (reservation["AvailabilityZone"], ", ".join(zones)),
        "platform": (reservation["InstancePlatform"], LINUX),
        "tenancy": (reservation.get("Tenancy", "default"), "default"),
        "placement group": (reservation.get("PlacementGroupArn"), group.placement.existing_arn),
    }
    for what, (actual, expected) in pairs.items():
        if actual != expected:
            message = f"its {what} is {actual or 'none'}, and the nodes' {expected or 'none'}"
            yield _error("live-reservation", path, message)
    if reservation["State"] == "scheduled":
        yield _warning(
            "live-reservation", path, f"it starts at {reservation['StartDate']:%Y-%m-%d %H:%M} UTC: nodes start then"
        )
    elif reservation["State"] != "active":
        yield _error("live-reservation", path, f"it is {reservation['State']}")
    total, free = reservation["TotalInstanceCount"], reservation["AvailableInstanceCount"]
    if total < group.most:
        yield _error("live-reservation", path, f"it holds {total} nodes, and the group has {group.most}")
    elif free < group.most:
        yield _warning(
            "live-reservation", path, f"{free} of its {total} nodes are free, unless this stack uses the others"
        )


def _purchases(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    """An offer expires within minutes. One that was bought is gone: the stack's own block replaces it."""
    for i, group in enumerate(plan.groups):
        block = group.market
        if isinstance(block, CapacityBlock) and block.purchase and not _bought(account, plan, block.purchase):
            path = f"cluster.nodes[{i}].market.buy"
            offer = _offer(account, group, block.id, block.purchase)
            if offer is None:
                yield _error("live-offer", path, f"AWS no longer has this offer for {group.most} × {group.type}")
                continue
            if offer["CurrencyCode"] != "USD" or float(offer["UpfrontFee"]) > block.purchase.usd_at_most:
                message = f"the offer costs {offer['UpfrontFee']} {offer['CurrencyCode']}"
                yield _error("live-offer", f"{path}.usd_at_most", message)
            if [offer["AvailabilityZone"]] != _zones_of(group, plan):
                yield _error(
                    "live-offer", path, f"the offer is in {offer['AvailabilityZone']}; put the nodes in that zone"
                )


def _offer(account: Account, group: AwsGroupPlan, id_: str, purchase: Purchase) -> Mapping[str, Any] | None:
    offers = account.listed(
        "ec2",
        "describe_capacity_block_offerings",
        "CapacityBlockOfferings",
        InstanceType=group.type,
        InstanceCount=group.most,
        CapacityDurationHours=purchase.hours,
    )
    return next((offer for offer in offers if offer["CapacityBlockOfferingId"] == id_), None)


def _bought(account: Account, plan: AwsPlan, purchase: Purchase) -> bool:
    """Whether the stack has bought that block already."""
    tags = {**plan.tags, LOGICAL_NAME: purchase.name}
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    return bool(account.listed("ec2", "describe_capacity_reservations", "CapacityReservations", Filters=filters))


def _roles(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    """A maintained fleet starts nodes by a role that no other call creates; an instant one needs none."""
    maintained = (
        isinstance(group.capacity, FixedSize) and group.capacity.fleet_type == "maintain" for group in plan.groups
    )
    if (first := next((i for i, is_maintained in enumerate(maintained) if is_maintained), None)) is None:
        return
    try:
        account.client("iam", GLOBAL_REGION).get_role(RoleName=FLEET_ROLE)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchEntity":
            raise
        command = f"`aws iam create-service-linked-role --aws-service-name {FLEETS}` creates it"
        message = f"the account has no {FLEET_ROLE}, which starts its nodes; {command}"
        yield _error("live-role", f"cluster.nodes[{first}].market", message)


def _quotas(account: Account, plan: AwsPlan) -> Iterator[Finding]:
    """All nodes of a stack must fit in the account's quota, even without anything else running."""
    vcpus_by_quota: Counter[str] = Counter()
    paths: dict[str, str] = {}
    for i, group in enumerate(plan.groups):
        if (code := _quota(group)) is not None:
            vcpus_by_quota[code] += group.most * (load().type(group.type).vcpus or 0)
            paths[code] = f"cluster.nodes[{i}].type"
    for code, vcpus in vcpus_by_quota.items():
        quota = account.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]
        if vcpus > quota["Value"]:
            name, limit = quota["QuotaName"], quota["Value"]
            message = f"{vcpus} vCPUs exceed the quota `{name}` ({limit:g}); request an increase from AWS"
            yield _error("live-quota", paths[code], message)


def _quota(group: AwsGroupPlan) -> str | None:
    """The code of the quota that the group counts against; None where there is none, or it is not known."""
    codes = (
        code
        for (market, name), code in QUOTAS.items()
        if isinstance(group.market, market) and re.match(name, group.type)
    )
    return next(codes, None)


def _zones_of(group: AwsGroupPlan, plan: AwsPlan) -> list[str]:
    zones = {subnet.name: subnet.zone for subnet in plan.network.subnets}
    return [zones[subnet] for subnet in group.subnets]


def _error(rule: str, path: str, message: str) -> Finding:
    return Finding(level="error", rule=rule, path=path, message=message)


def _warning(rule: str, path: str, message: str) -> Finding:
    return Finding(level="warning", rule=rule, path=path, message=message)
