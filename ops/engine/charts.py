"""Charts are held against their lock before the engine installs them: the archive of a locked one has its digest.

The engine fetches an archive for itself (helm knows no digest for charts of a repository), so this finds a repository
that was changed, and not one that answers the engine otherwise than us. Charts of a registry are named by their digest,
which the engine's own helm checks.
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
    """An error for each chart whose archive is not the locked one, or cannot be had."""
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
        return f"{chart.archive} is larger than {MOST_BYTES} bytes, which no chart is"
    if (digest := hashlib.sha256(archive).hexdigest()) != chart.sha256:
        return f"{chart.archive} has sha256 {digest}, and the lock says {chart.sha256}: it is not installed"
    return ""
