"""AWS's API responses as rows of the tables: pure functions; `ops` makes the requests.

Shapes: EC2 API, DescribeInstanceTypes, DescribeInstanceTypeOfferings, DescribeSpotPriceHistory, GetSpotPlacementScores;
Price List API, GetProducts, whose products are JSON text.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from infra.catalog.rows import Gpu, InstanceType, Offering, Price, SpotPrice

TYPES_SOURCE = "EC2 DescribeInstanceTypes"
OFFERINGS_SOURCE = "EC2 DescribeInstanceTypeOfferings"
PRICES_SOURCE = "AWS Price List GetProducts"
SPOT_SOURCE = "EC2 DescribeSpotPriceHistory"

# EC2's names that are no beginning of the maker's.
OTHER_NAMES = {"RTX PRO 4500": "RTX-PRO-4500-Blackwell-SE", "RTX PRO Server 6000": "RTX-PRO-6000-Blackwell-SE"}
NETWORK = re.compile(r"(?P<burst>Up to )?(?:(?P<cards>\d+)x )?(?P<gbps>[\d.]+) Gigabit")  # "4x 100 Gigabit"

Answer = Mapping[str, Any]


class UnknownDeviceError(ValueError):
    """EC2 has a GPU that gpus.csv has not."""


def nvidia(info: Answer) -> Answer | None:
    """The first GPU of a type, None where it has none of NVIDIA's."""
    devices = info.get("GpuInfo", {}).get("Gpus", ())
    return next((device for device in devices if device["Manufacturer"] == "NVIDIA"), None)


def instance_type(info: Answer, gpus: Sequence[Gpu], today: date) -> InstanceType:
    """A row of types.csv from an InstanceTypeInfo. Raises UnknownDeviceError.

    A slice of a GPU counts as a logical GPU. EC2 says nothing of NVLink: all GPUs that have it are joined by it where
    there are several. Nor does it name EFA's rate, which is the machine's: cards describe the plain side of a port.
    """
    name, network, device = info["InstanceType"], info["NetworkInfo"], nvidia(info)
    gpu = gpu_of(device, gpus) if device else None
    count = device.get("LogicalGpuCount", device["Count"]) if device else 0
    cards, disks = network["NetworkCards"], info.get("InstanceStorageInfo", {}).get("Disks", ())
    gbps, burst = network_speed(network["NetworkPerformance"])
    return InstanceType(
        cloud="aws",
        name=name,
        gpu=gpu.name if gpu else None,
        gpu_count=count,
        gpu_share=share_of(device) if device else 1.0,
        gpu_memory_mib=device["MemoryInfo"]["SizeInMiB"] if device else None,
        nvlink=gpu is not None and count > 1 and bool(gpu.nvlink_gb_per_s),
        vcpus=info["VCpuInfo"]["DefaultVCpus"],
        memory_gib=info["MemoryInfo"]["SizeInMiB"] // 1024,
        cpu_arch=info["ProcessorInfo"]["SupportedArchitectures"][-1],  # i386 stands before x86_64
        network_gbps=gbps,
        network_burst=burst,
        network_cards=network["MaximumNetworkCards"],
        interfaces_per_card=min(card["MaximumNetworkInterfaces"] for card in cards),
        fabric="efa" if network["EfaSupported"] else None,
        fabric_gbps=gbps if network["EfaSupported"] else None,
        fabric_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        fabric_on_first_card="efa-only" in cards[0].get("InterfaceTypes", ()),
        disk_count=sum(disk["Count"] for disk in disks),
        disk_gb=max((disk["SizeInGB"] for disk in disks), default=0),
        boot_modes=tuple(info.get("SupportedBootModes", ())),
        usage_classes=tuple(info["SupportedUsageClasses"]),
        source=TYPES_SOURCE,
        date=today,
    )


def gpu_of(device: Answer, gpus: Sequence[Gpu]) -> Gpu:
    """The GPU of EC2's name whose memory is nearest. Raises UnknownDeviceError."""
    name, mib = device["Name"], device["MemoryInfo"]["SizeInMiB"]
    known = OTHER_NAMES.get(name, name)
    same = [gpu for gpu in gpus if gpu.name == known or gpu.name.startswith(f"{known}-")]
    if not same:
        raise UnknownDeviceError(f"gpus.csv has no GPU that EC2 calls {name} ({mib} MiB)")
    return min(same, key=lambda gpu: abs(gpu.memory_gb - mib / 1024 / share_of(device)))


def share_of(device: Answer) -> float:
    return float(device.get("GpuPartitionSize", 1.0))


def network_speed(performance: str) -> tuple[float | None, bool | None]:
    """Gbit/s of all cards together, and whether only for a while; None for words that name no figure ("High")."""
    speed = NETWORK.fullmatch(performance)
    if speed is None:
        return None, None
    return int(speed["cards"] or 1) * float(speed["gbps"]), speed["burst"] is not None


def offerings(answers: Iterable[Answer], region: str, today: date) -> Iterator[Offering]:
    """answers: InstanceTypeOfferings by availability-zone-id."""
    zones: defaultdict[str, set[str]] = defaultdict(set)
    for answer in answers:
        zones[answer["InstanceType"]].add(answer["Location"])
    for name, ids in zones.items():
        yield Offering(type=name, region=region, zone_ids=tuple(sorted(ids)), source=OFFERINGS_SOURCE, date=today)


def price(product: str, region: str, today: date) -> Price | None:
    """A row of prices.csv from a product of the price list; None where it has no price by the hour."""
    document = json.loads(product)
    for term in document["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            usd = float(dimension["pricePerUnit"].get("USD", 0))
            if dimension["unit"] == "Hrs" and usd > 0:
                name = document["product"]["attributes"]["instanceType"]
                return Price(type=name, region=region, on_demand_per_hour=usd, source=PRICES_SOURCE, date=today)
    return None


def spot(
    history: Iterable[Answer], scores: Mapping[tuple[str, str], int], region: str, since: datetime, until: datetime
) -> Iterator[SpotPrice]:
    """The rows of spot.csv from a price history, which is a log of changes: a price holds until the next of its zone.

    What held at `since` is the last change before it. scores: placement scores by type and zone id.
    """
    changes: defaultdict[tuple[str, str], dict[datetime, float]] = defaultdict(dict)
    for change in sorted(history, key=lambda each: each["Timestamp"]):
        key = (change["InstanceType"], change["AvailabilityZoneId"])
        changes[key][max(change["Timestamp"], since)] = float(change["SpotPrice"])
    for (name, zone), log in changes.items():
        yield SpotPrice(
            type=name,
            region=region,
            zone_id=zone,
            usd_per_hour=round(_mean(log, until), 6),
            least_usd_per_hour=min(log.values()),
            most_usd_per_hour=max(log.values()),
            days=round((until - min(log)).total_seconds() / 86_400),
            placement_score=scores.get((name, zone)),
            source=SPOT_SOURCE,
            date=until.date(),
        )


def _mean(log: Mapping[datetime, float], until: datetime) -> float:
    """Each price weighs as long as it held."""
    times = [*sorted(log), until]
    held = [(end - begin).total_seconds() for begin, end in pairwise(times)]
    total = sum(held)
    return sum(log[at] * seconds for at, seconds in zip(times, held, strict=False)) / total if total else log[times[0]]
