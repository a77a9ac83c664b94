"""What AWS has to offer, as boto3 asks for it: zones, types, images, quotas, and capacity that was reserved before.

Everything that is asked for by name is there; only reservations are rows (`RESERVATION`), put there by who needs one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud_provider.kinds import RefusedError
from cloud_provider.store import Row

from aws_cloud import images
from aws_cloud.answers import Answer, Answering, Asked, View, selected, tags
from aws_cloud.kinds import ACCOUNT
from aws_cloud.kinds_ec2 import BLOCK, RESERVATION

BLOCK_OFFERING = "cb-0123456789abcdef0"
QUOTA_VCPUS = 100_000.0  # enough for every test


def _zones(view: View, asked: Asked) -> Answer:
    told = {"RegionName": view.region, "State": "available", "OptInStatus": "opt-in-not-required"}
    return {
        "AvailabilityZones": [
            {"ZoneName": zone, "ZoneId": f"id-of-{zone}", **told}
            for zone in _filter(asked, "zone-name")
            if zone.startswith(view.region)
        ]
    }


def _offerings(view: View, asked: Asked) -> Answer:
    zones = _filter(asked, "location") or [f"{view.region}{letter}" for letter in "abcdef"]
    return {
        "InstanceTypeOfferings": [
            {"InstanceType": type_, "LocationType": asked.get("LocationType", "region"), "Location": zone}
            for type_ in _filter(asked, "instance-type")
            for zone in zones
        ]
    }


def _parameter(view: View, asked: Asked) -> Answer:
    found = images.parameter(asked["Name"], view.region)
    return {"Parameter": {"Name": asked["Name"], "Type": found["type"], "Value": found["value"], "ARN": found["arn"]}}


def _images(view: View, asked: Asked) -> Answer:
    return {"Images": [{"ImageId": id_, "State": "available", "Architecture": "x86_64"} for id_ in asked["ImageIds"]]}


def _quota(view: View, asked: Asked) -> Answer:
    code = asked["QuotaCode"]
    arn = f"arn:aws:servicequotas:{view.region}:{ACCOUNT}:{asked['ServiceCode']}/{code}"
    return {"Quota": {"QuotaCode": code, "QuotaName": code, "QuotaArn": arn, "Value": QUOTA_VCPUS}}


def _reservations(view: View, asked: Asked) -> Answer:
    wanted = asked.get("CapacityReservationIds")
    rows = [row for type_ in (RESERVATION, BLOCK) for row in selected(view, type_, asked, "", {})]
    found = [row for row in rows if not wanted or row.id in wanted]
    if wanted and len(found) < len(wanted):
        message = f"The capacity reservation ID '{', '.join(wanted)}' does not exist"
        raise RefusedError("InvalidCapacityReservationId.NotFound", message)
    return {"CapacityReservations": [_reservation(view, row) for row in found]}


def _blocks(view: View, asked: Asked) -> Answer:
    """One offer for whatever is asked, in the region's first zone."""
    return {
        "CapacityBlockOfferings": [
            {
                "CapacityBlockOfferingId": BLOCK_OFFERING,
                "InstanceType": asked["InstanceType"],
                "InstanceCount": asked["InstanceCount"],
                "AvailabilityZone": f"{view.region}a",
                "CapacityBlockDurationHours": asked["CapacityDurationHours"],
                "UpfrontFee": "30000.00",
                "CurrencyCode": "USD",
            }
        ]
    }


def _reservation(view: View, row: Row) -> Answer:
    told = row.properties
    held = '"' + row.id + '"'
    templates = {one.id for one in view.store.rows("instr(inputs, ?)", held)}
    machines = view.store.rows("state = 'running'")
    taken = sum((one.inputs.get("launchTemplate") or {}).get("id") in templates for one in machines)
    return {
        "CapacityReservationId": row.id,
        "ReservationType": told.get("reservationType", "capacity-block" if row.type == BLOCK else "default"),
        "InstanceType": told.get("instanceType", ""),
        "InstancePlatform": told.get("instancePlatform", "Linux/UNIX"),
        "AvailabilityZone": told.get("availabilityZone", ""),
        "Tenancy": told.get("tenancy", "default"),
        "PlacementGroupArn": told.get("placementGroupArn"),
        "State": row.state or "active",
        "TotalInstanceCount": int(told.get("instanceCount", 0)),
        "AvailableInstanceCount": int(told.get("instanceCount", 0)) - taken,
        "Tags": tags(row),
    }


def _filter(asked: Mapping[str, Any], name: str) -> list[str]:
    return [value for one in asked.get("Filters") or [] if one["Name"] == name for value in one["Values"]]


OFFER_ANSWERS: Mapping[tuple[str, str], Answering] = {
    ("ec2", "DescribeAvailabilityZones"): _zones,
    ("ec2", "DescribeInstanceTypeOfferings"): _offerings,
    ("ec2", "DescribeImages"): _images,
    ("ec2", "DescribeCapacityReservations"): _reservations,
    ("ec2", "DescribeCapacityBlockOfferings"): _blocks,
    ("servicequotas", "GetServiceQuota"): _quota,
    ("ssm", "GetParameter"): _parameter,
}
