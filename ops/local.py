"""The nodes on this computer: the provider finds what it made by itself, so nothing has to be recovered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.local import sweep
from infra.handover import Handover
from infra.plan.plan import Finding, Plan
from ops import recovery
from ops.clouds import Discovered
from ops.failure import Failure
from ops.phases import Phase
from ops.project import Project
from ops.recovery import Row, State


@dataclass(frozen=True)
class Cloud:
    """This computer."""

    project: Project
    plan: Plan
    billed: bool = False

    def prepare(self, told: Handover) -> None:
        """Nothing: the site makes its own keys."""

    def checked(self) -> tuple[Finding, ...]:
        return ()

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        return state, 0

    def discovered(self, told: Handover) -> Discovered:
        return Discovered(told, ())

    def delivered(self) -> None:
        """Nothing: a site gives all of its nodes, or the engine has failed."""

    def renew(self, group: str) -> str:
        raise Failure(f"--renew {group}: `up` makes lost nodes of this computer again by itself", code=2)

    def fall_back(self) -> list[str]:
        return []

    def strays(self, state: State) -> list[str]:
        """What the stack's site holds while the engine knows nothing of it."""
        return [] if any(recovery.ids(state).values()) else sweep.left_behind(self._site)

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        return state, []

    def clear(self, state: State, phase: Phase) -> list[str]:
        return sweep.remove(self._site) if self.strays(state) else []

    @property
    def _site(self) -> Path:
        return self.project.site(self.plan.stack)
