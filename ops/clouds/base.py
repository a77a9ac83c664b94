"""What the commands need of a cloud beyond the engine: the contract of `ops.clouds.<cloud>.cloud.Cloud`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from infra import registry
from infra.handover import Handover
from infra.plan.model import Finding, Plan
from infra.plan.summary import summary_of
from ops.clock import REAL, Clock
from ops.console.phases import Phase, Phases
from ops.engine.state_repair import Row, State
from ops.errors import CommandError
from ops.jobs.base import Job, JobRunner
from ops.nodes.ssh import NodeState
from ops.project import Project

Document = dict[str, Any]


@dataclass(frozen=True)
class Discovered:
    """The cluster as it is now: the handover with the reachable nodes, and the state of the other and missing ones."""

    handover: Handover
    others: tuple[NodeState, ...]


@dataclass(frozen=True)
class Cloud:
    """A cloud whose resources are all in the engine's state; each cloud overrides what differs.

    billed: whether it costs money, so that `up` shows a plan with its price and asks.
    """

    project: Project
    plan: Any  # of this cloud
    clock: Clock = REAL
    billed: ClassVar[bool] = False

    def prepare(self, handover: Handover) -> None:
        """Puts the private key at the path that the handover will name. Raises CommandError."""

    def findings(self) -> tuple[Finding, ...]:
        """Findings of the live account on the plan, before anything is created."""
        return ()

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        """The engine's state, completed with existing resources that it lacks, and how many those are."""
        return state, 0

    def discovered(self, handover: Handover) -> Discovered:
        """The current nodes."""
        return Discovered(handover, ())

    def require_capacity(self) -> None:
        """Cancels requests for capacity that the cloud did not fulfil. Raises CommandError where there was one."""

    def renewable(self, group: str) -> None:
        """Raises CommandError for a group that its cloud refills by itself."""
        raise NotImplementedError

    def renew(self, group: str) -> str:
        """Terminates what is left of a renewable group; returns a summary."""
        raise NotImplementedError

    def fall_back(self) -> list[str]:
        """Buys the fallback of the plan where cheaper capacity is unavailable; returns a line for each purchase."""
        return []

    def orphans(self, state: State) -> list[str]:
        """A line for each orphaned resource: tagged, but not in the Pulumi state."""
        return []

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        """The state with all orphans that the engine can destroy, and their URNs."""
        return state, []

    def clear(self, state: State, phase: Phase) -> list[str]:
        """Deletes orphans that the engine cannot, waits until none is left, and returns a line for each."""
        return []

    def copy(self, handover: Handover, phases: Phases) -> Document:
        """Copies the buckets of `copies`: the document of `gpufleet copy` but for its stack. Raises CommandError."""
        raise NotImplementedError

    def cluster_runner(self, job: Job, group: str | None) -> JobRunner:
        """Runs a job through the API of the stack's Kubernetes cluster. Raises CommandError where there is none."""
        location = summary_of(self.plan).location
        raise CommandError(f"jobs on {location} are submitted with its own tools: see docs/kubernetes.md")


def contributed(module: str) -> tuple[str, Any]:
    """The cloud whose folder in ops/clouds has this module, such as `catalog_source`, and the module itself.

    Raises LookupError where no cloud has it.
    """
    for cloud in registry.CLOUDS:
        if find_spec(f"ops.clouds.{cloud}.{module.partition('.')[0]}"):
            return cloud, import_module(f"ops.clouds.{cloud}.{module}")
    raise LookupError(module)


def of(project: Project, plan: Plan) -> Cloud:
    """The cloud of a plan; its SDK loads only with it."""
    cloud: Cloud = import_module(f"ops.clouds.{plan.cloud}.cloud").Cloud(project, plan)
    return cloud
