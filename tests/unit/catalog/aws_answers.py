"""What AWS answers: instance types and offerings from moto, the rest in shapes that botocore's own models check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
from botocore.stub import ANY, Stubber
from moto import mock_aws

from infra.catalog import load
from ops.clouds.aws.account import Account

REGION = "us-east-1"
GPUS_OF_MANY_TYPES = ("T4", "A10G", "T4g", "L4", "L40S", "RTX-PRO-4500", "RTX-PRO-6000")  # the others have one or two
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@cache
def instance_types() -> dict[str, dict[str, Any]]:
    """moto's copy of DescribeInstanceTypes, by name: those of the tables."""
    with mock_aws():
        pages = boto3.client("ec2", REGION).get_paginator("describe_instance_types").paginate()
        found = {info["InstanceType"]: info for page in pages for info in page["InstanceTypes"]}
    return {kind.name: found[kind.name] for kind in load().types if kind.name in found}


@cache
def zone_offerings() -> list[dict[str, str]]:
    """By zone id, of those types."""
    with mock_aws():
        pages = boto3.client("ec2", REGION).get_paginator("describe_instance_type_offerings")
        said = pages.paginate(LocationType="availability-zone-id")
        every = [offer for page in said for offer in page["InstanceTypeOfferings"]]
    return [offer for offer in every if offer["InstanceType"] in instance_types()]


def product(name: str, usd: str, unit: str = "Hrs") -> str:
    """A product of the price list, as the Price List Query API sends it: JSON text."""
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}, "beginRange": "0", "endRange": "Inf", "appliesTo": []}
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "sku": "A1", "attributes": {"instanceType": name}},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {"A1.JRTCKXETXF": {"priceDimensions": {"A1.JRTCKXETXF.6YS6EN2CT7": dimension}}}},
        }
    )


def spot_change(name: str, zone_id: str, usd: str, at: datetime) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "AvailabilityZone": f"{REGION}a",
        "AvailabilityZoneId": zone_id,
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": usd,
        "Timestamp": at,
    }


@contextmanager
def answering(types: dict[str, dict[str, Any]], prices: list[str], spot: list[dict[str, Any]]) -> Iterator[Account]:
    """An account whose clients answer one refresh; botocore refuses calls and answers that its models do not have."""
    account = Account(REGION)
    ec2, pricing = Stubber(account.client("ec2")), Stubber(account.client("pricing", REGION))
    ec2.add_response("describe_instance_types", {"InstanceTypes": list(types.values())}, {})
    asked = {"LocationType": "availability-zone-id"}
    ec2.add_response("describe_instance_type_offerings", {"InstanceTypeOfferings": zone_offerings()}, asked)
    pricing.add_response("get_products", {"PriceList": prices}, {"ServiceCode": "AmazonEC2", "Filters": ANY})
    scores = [{"Region": REGION, "AvailabilityZoneId": "use1-az2", "Score": 7}]
    asked = {"InstanceTypes": ANY, "TargetCapacity": 4, "SingleAvailabilityZone": True, "RegionNames": [REGION]}
    for _ in GPUS_OF_MANY_TYPES:
        ec2.add_response("get_spot_placement_scores", {"SpotPlacementScores": scores}, asked)
    asked = {"InstanceTypes": ANY, "ProductDescriptions": ["Linux/UNIX"], "StartTime": ANY, "EndTime": ANY}
    ec2.add_response("describe_spot_price_history", {"SpotPriceHistory": spot}, asked)
    with ec2, pricing:
        yield account


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)
