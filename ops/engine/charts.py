"""Compares the archives of charts with their locked digests before the engine installs them.

The engine fetches an archive itself (helm takes no digest for charts of a repository), so this detects a repository
that was changed, and not one that answers the engine differently. Charts of a registry are named by their digest, which
the engine's own helm checks.
"""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator

from infra.plan.chart import ChartPlan
from infra.plan.model import Finding, Plan

ANSWER_SECONDS = 20.0
MOST_BYTES = 16 * 2**20  # a chart is text; the largest of ours, with its definitions, is below one


def differing(plan: Plan) -> Iterator[Finding]:
    """An error for each chart whose archive is not the locked one, or cannot be fetched."""
    for chart in plan.charts:
        if chart.sha256 and chart.archive and (problem := _problem(chart)):
            message = f"chart {chart.name} {chart.version}: {problem}"
            yield Finding(level="error", rule="charts-are-the-locked-ones", path="cluster", message=message)


def _problem(chart: ChartPlan) -> str:
    try:
        with urllib.request.urlopen(chart.archive, timeout=ANSWER_SECONDS) as answer:
            archive = answer.read(MOST_BYTES + 1)
    except OSError as error:
        return f"{chart.archive} cannot be fetched: {error}"
    if len(archive) > MOST_BYTES:
        return f"{chart.archive} is larger than {MOST_BYTES} bytes, too large for a chart"
    if (digest := hashlib.sha256(archive).hexdigest()) != chart.sha256:
        return f"{chart.archive} has sha256 {digest}, but {chart.sha256} is locked: not installed"
    return ""
