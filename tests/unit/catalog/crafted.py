"""Rows made for a test: each names only what the test is about."""

from __future__ import annotations

from datetime import date
from typing import Any

from infra.catalog import Catalog, Gpu, InstanceType, Price

DAY = date(2026, 7, 20)
REGION = "moon-1"


def gpu(name: str = "G1", **figures: Any) -> Gpu:
    row: dict[str, Any] = {
        "name": name,
        "architecture": "Test",
        "compute_capability": 9.0,
        "bf16_dense_tflops": 1000.0,
        "memory_gb": 80,
        "confidence": "high",
        "source": "made up",
        "date": DAY,
    }
    return Gpu(**row | figures)


def machine(name: str, **figures: Any) -> InstanceType:
    row: dict[str, Any] = {
        "cloud": "test",
        "name": name,
        "gpu": "G1",
        "gpu_count": 1,
        "gpu_share": 1.0,
        "gpu_memory_mib": 80 * 1024,
        "nvlink": False,
        "cpu_arch": "x86_64",
        "fabric_interfaces": 0,
        "usage_classes": ("on-demand",),
        "source": "made up",
        "date": DAY,
    }
    return InstanceType(**row | figures)


def with_fabric(name: str, **figures: Any) -> InstanceType:
    cards = {"fabric": "efa", "network_cards": 1, "fabric_interfaces": 1, "fabric_on_first_card": True}
    return machine(name, **cards | figures)


def price(type_name: str, usd_per_hour: float) -> Price:
    return Price(type=type_name, region=REGION, on_demand_per_hour=usd_per_hour, source="made up", date=DAY)


def catalog(priced: dict[InstanceType, float | None], *gpus: Gpu) -> Catalog:
    """These machines at these prices, None where no price is known; with the GPU G1 when none is given."""
    prices = tuple(price(kind.name, usd) for kind, usd in priced.items() if usd is not None)
    # one priced machine without a GPU in each cloud, so that the region is known even where a test prices nothing
    clouds = dict.fromkeys(["test", *(kind.cloud for kind in priced)])
    offices = tuple(
        machine(f"{cloud}-office", cloud=cloud, gpu=None, gpu_count=0, gpu_memory_mib=None) for cloud in clouds
    )
    prices += tuple(price(office.name, 0.1) for office in offices)
    return Catalog(types=(*priced, *offices), gpus=gpus or (gpu(),), prices=prices)
