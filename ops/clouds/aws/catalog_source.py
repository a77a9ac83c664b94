"""Instance types, offerings and prices of one AWS region, as rows of the tables, for `gpufleet catalog refresh`.

Sources: EC2 User Guide, "Spot placement score" (at least three instance types, or the score is low whatever the
capacity; ten different requests a day); Price List API, "Finding services and products" (available in three regions).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from infra.catalog import Catalog, Gpu, InstanceType, Offering, Price, SpotPrice
from infra.catalog.merge import Answers
from infra.clouds.aws.catalog import ec2
from ops.clouds.aws.account import Account, answers

PRICE_LIST_REGION = "us-east-1"
SPOT_DAYS = 7
LEAST_TYPES, MOST_REQUESTS = 3, 10  # of placement scores
SCORED_NODES = 4

LINUX_ON_DEMAND = {  # one product a type: Linux without more, on shared machines, at the price of running it
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


def ask(region: str, tables: Catalog, on_progress: Callable[[str], object]) -> Answers:
    """All that the tables hold of a region: types with NVIDIA GPUs, and the other types that they have already.

    on_progress: called with the name of each query. Raises CommandError.
    """
    account = Account(region)
    now, known = datetime.now(UTC), {kind.name for kind in tables.types}
    with answers(account):
        on_progress("instance types")
        types, left_out = _types(account, known, tables.gpus, now)
        names = sorted(kind.name for kind in types)
        on_progress("offerings")
        offered = _offerings(account, set(names), now)
        on_progress("on-demand prices")
        prices = tuple(price for price in _prices(account, now) if price.type in names)
        on_progress("placement scores")
        scores = _scores(account, types)
        on_progress(f"spot prices of {SPOT_DAYS} days")
        spot = _spot(account, names, scores, now)
    return Answers(
        regions=(account.region,), types=types, offerings=offered, prices=prices, spot=spot, left_out=left_out
    )


def _types(
    account: Account, known: set[str], gpus: Sequence[Gpu], now: datetime
) -> tuple[tuple[InstanceType, ...], tuple[str, ...]]:
    rows: list[InstanceType] = []
    left_out: list[str] = []
    for info in account.listed("ec2", "describe_instance_types", "InstanceTypes"):
        if ec2.nvidia(info) is None and info["InstanceType"] not in known:
            continue
        try:
            rows.append(ec2.instance_type(info, gpus, now.date()))
        except ec2.UnknownDeviceError as unknown:
            left_out.append(f"{info['InstanceType']}: {unknown}")
    return tuple(rows), tuple(left_out)


def _offerings(account: Account, names: set[str], now: datetime) -> tuple[Offering, ...]:
    items = account.listed(
        "ec2", "describe_instance_type_offerings", "InstanceTypeOfferings", LocationType="availability-zone-id"
    )
    known_types = [offering for offering in items if offering["InstanceType"] in names]
    return tuple(ec2.offerings(known_types, account.region, now.date()))


def _prices(account: Account, now: datetime) -> Iterator[Price]:
    terms = {**LINUX_ON_DEMAND, "regionCode": account.region}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in terms.items()]
    products = account.listed(
        "pricing", "get_products", "PriceList", region=PRICE_LIST_REGION, ServiceCode="AmazonEC2", Filters=filters
    )
    return filter(None, (ec2.price(product, account.region, now.date()) for product in products))


def _spot(
    account: Account, names: Sequence[str], scores: dict[tuple[str, str], int], now: datetime
) -> tuple[SpotPrice, ...]:
    since = now - timedelta(days=SPOT_DAYS)
    history = account.listed(
        "ec2",
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=list(names),
        ProductDescriptions=["Linux/UNIX"],
        StartTime=since,
        EndTime=now,
    )
    return tuple(ec2.spot(history, scores, account.region, since, now))


def _scores(account: Account, types: Sequence[InstanceType]) -> dict[tuple[str, str], int]:
    """By type and zone id. One request for each GPU that enough types have, as far as a day's requests go."""
    by_gpu: defaultdict[str, list[str]] = defaultdict(list)
    for kind in types:
        if kind.gpu is not None and "spot" in kind.usage_classes:
            by_gpu[kind.gpu].append(kind.name)
    requests = [names for names in by_gpu.values() if len(names) >= LEAST_TYPES][:MOST_REQUESTS]
    placement_scores: partial[list[Any]] = partial(
        account.listed,
        "ec2",
        "get_spot_placement_scores",
        "SpotPlacementScores",
        TargetCapacity=SCORED_NODES,
        SingleAvailabilityZone=True,
        RegionNames=[account.region],
    )
    return {
        (name, score["AvailabilityZoneId"]): score["Score"]
        for names in requests
        for score in placement_scores(InstanceTypes=names)
        for name in names
    }
