"""The plan of nodes on this computer as text for people."""

from __future__ import annotations

from infra.clouds.local.plan import LocalPlan
from infra.plan.model import GroupPlan
from infra.plan.summary import Summary


class LocalSummary(Summary[LocalPlan, GroupPlan]):
    """Says how nodes are kept apart."""

    @property
    def location(self) -> str:
        return f"this computer, isolation {self.plan.isolation}"
