"""What the day-by-day commands need of a cloud beyond the engine: `ops.clouds.<cloud>.cloud.Cloud`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from infra.handover import Handover
from infra.plan.model import Finding, Plan
from ops.console.phases import Phase
from ops.engine.state_repair import Row, State
from ops.nodes.ssh import NodeState
from ops.project import Project


@dataclass(frozen=True)
class Discovered:
    """The cluster as it is now: the handover with the nodes that can be reached, and what is on its way or missing."""

    told: Handover
    others: tuple[NodeState, ...]


@dataclass(frozen=True)
class Cloud:
    """A cloud of which the engine's own state says everything; each cloud overrides where there is more to it.

    billed: it costs money, so `up` shows a plan with its price and asks.
    """

    project: Project
    plan: Any  # the plan of this very cloud
    billed: ClassVar[bool] = False

    def prepare(self, told: Handover) -> None:
        """Puts the private key where the handover will say that it is. Raises CommandError."""

    def checked(self) -> tuple[Finding, ...]:
        """What the cloud itself has to say of the plan before anything is made."""
        return ()

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        """The engine's state, completed with what exists and it lacks, and how many resources that were."""
        return state, 0

    def discovered(self, told: Handover) -> Discovered:
        """The nodes of the moment."""
        return Discovered(told, ())

    def delivered(self) -> None:
        """Withdraws what was asked for and not given, and raises CommandError when there is such a thing."""

    def renewable(self, group: str) -> None:
        """Raises CommandError for a group that its cloud refills by itself; a cloud without others does so for each."""
        raise NotImplementedError

    def renew(self, group: str) -> str:
        """Ends what is left of a renewable group; returns what that was."""
        raise NotImplementedError

    def fall_back(self) -> list[str]:
        """Buys what the plan names for want of something cheaper; a line for each purchase."""
        return []

    def strays(self, state: State) -> list[str]:
        """A line for everything of the stack that exists and that the engine's state does not know."""
        return []

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        """The state with all of them that the engine can destroy, and their URNs."""
        return state, []

    def clear(self, state: State, phase: Phase) -> list[str]:
        """Ends what only the cloud itself can end, waits until no stray is left, and returns what there was."""
        return []


def of(project: Project, plan: Plan) -> Cloud:
    """The cloud of a plan; its own SDK loads only with it."""
    cloud: Cloud = import_module(f"ops.clouds.{plan.cloud}.cloud").Cloud(project, plan)
    return cloud
