"""The lock of charts, charts.csv: the digest of each version, the same wherever it is fetched from.

sha256: of the archive, or, for a chart of a registry, of its manifest (OCI image specification, descriptors). archive:
where the archive lies; empty for a registry, where the manifest's digest is part of the chart's name. Both are empty
for a version without a recorded digest: `gpufleet catalog charts --write` records it.

Sources of those that are there: the archives in the publishers' own repositories on 2026-08-22 (kedacore/charts, branch
main, and aws/eks-charts, branch gh-pages), whose sha256 is the `digest` of the index.yaml beside them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from infra.plan.chart import ChartPlan

LOCK = Path(__file__).with_name("charts.csv")


def locked(chart: ChartPlan) -> ChartPlan:
    """The chart with its digest, if the lock has one of just this version."""
    row = rows().get((chart.name, chart.version), {})
    return replace(chart, sha256=row.get("sha256", ""), archive=row.get("archive", ""))


@cache
def rows(lock: Path = LOCK) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """By chart and version."""
    with lock.open(encoding="utf-8") as file:
        return {(row["chart"], row["version"]): row for row in csv.DictReader(file)}
