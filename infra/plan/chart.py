"""A Helm chart, decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ChartPlan:
    """A Helm chart in one version. repository: empty for a chart of a registry, whose `chart` begins with oci://.

    after: the charts whose definitions of custom resources it needs. sha256, archive: see `chart_lock`; both are empty
    for a chart that is known by its version alone, which is an error where the stack file is strict about it.
    """

    name: str
    chart: str
    repository: str
    version: str
    namespace: str
    values: Mapping[str, Any]
    after: tuple[str, ...] = ()
    sha256: str = ""
    archive: str = ""
    strict: bool = False

    @property
    def reference(self) -> str:
        """What the engine is to fetch: from a registry by digest, where that is known."""
        return f"{self.chart}@sha256:{self.sha256}" if self.sha256 and not self.repository else self.chart
