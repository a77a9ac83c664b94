"""Rules about the Helm charts that a stack installs."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.plan.model import Plan
from infra.spec.cluster import Cluster


@rule("charts-are-known-by-digest", Plan, level="warning")
def charts_are_known_by_digest(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """A version is what its repository gives out today; a digest is one content (OCI image specification)."""
    if unknown := _unknown(plan, strict=False):
        yield "cluster", f"charts not pinned by digest, which their repositories can change: {unknown}"


@rule("strict-charts-are-known-by-digest", Plan)
def strict_charts_are_known_by_digest(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """The same, for a stack file that says `supply: strict`."""
    if unknown := _unknown(plan, strict=True):
        yield "cluster", f"`supply: strict`, and no digest of {unknown}: run `gpufleet catalog charts --write`"


def _unknown(plan: Plan, *, strict: bool) -> str:
    unknown = [chart for chart in plan.charts if not chart.sha256 and chart.strict == strict]
    return ", ".join(f"{chart.name} {chart.version}" for chart in unknown)
