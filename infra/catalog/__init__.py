"""The catalog: tables of instance types, GPUs and prices, each row with its source and its date.

The tables hold every AWS type with an NVIDIA GPU (p3 … p6, g4dn … g7e, gr6) and every one of Alibaba Cloud (gn5 … gn8,
ebmgn*, sccgn*), with common sizes for a head node; and of Azure (ND) and Tencent Cloud (GN) what can be compared, and
not deployed yet. They leave out what this project's driver, NCCL and PyTorch builds do not run on: Trainium and
Inferentia (trn, inf), Gaudi (dl) and AMD (g4ad). Prices are on-demand prices, each with its day; spot prices move by
the hour, so those of spot.csv are shown as observations; there are none of Alibaba Cloud. An empty cell means that no
reliable figure is published; it is never filled with a guess. `gpufleet catalog refresh` writes the tables of AWS from
AWS's own answers, but for extras.csv: what stands beside the nodes on a bill, from pages that were read.
"""

from infra.catalog.catalog import (
    Catalog,
    Rate,
    UnknownGpuError,
    UnknownNameError,
    UnknownRegionError,
    UnknownTypeError,
    load,
)
from infra.catalog.rows import Extra, FabricNeed, Gpu, InstanceType, Offering, Precision, Price, SpotPrice
from infra.catalog.table import TableError

__all__ = [
    "Catalog",
    "Extra",
    "FabricNeed",
    "Gpu",
    "InstanceType",
    "Offering",
    "Precision",
    "Price",
    "Rate",
    "SpotPrice",
    "TableError",
    "UnknownGpuError",
    "UnknownNameError",
    "UnknownRegionError",
    "UnknownTypeError",
    "load",
]
