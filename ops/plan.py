"""`gpufleet plan`: what a stack would create and cost, rendered in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infra.plan import decide, described
from infra.plan.plan import Cost, Plan
from infra.spec import StackFile
from ops import cluster
from ops.project import Project


@dataclass(frozen=True)
class Planned:
    """A stack's file, what was decided of it, and the document of `--json` (the design's contract)."""

    file: StackFile
    decided: Plan
    document: dict[str, Any]

    @property
    def refused(self) -> bool:
        """Whether a rule over the decision, or the policy over its resources, forbids it."""
        return any(finding["level"] == "error" for finding in self.document["findings"])


def plan(project: Project, stack: str) -> Planned:
    """Raises Failure (code 2) for a wrong stack file; a plan that a rule refuses is told with its findings."""
    file = cluster.read(project, stack)
    decided = decide(file)
    from infra import graph  # pulls in the engine's SDK: only once the file is known to be sound

    return Planned(file, decided, graph.plan_document(project.root, stack))


def text(planned: Planned) -> str:
    """The plan as a person reads it: network, groups, storage, access, findings, price."""
    decided = planned.decided
    gateway = f"   this computer is {decided.network.gateway}" if decided.network.gateway else ""
    rows = [("network", f"{decided.network.cidr}{gateway}")]
    rows += [(group.name, group.summary) for group in decided.groups]
    rows += [("storage", f"{store.kind} {store.name} → {store.mount}") for store in decided.storage]
    rows += [("access", decided.access.summary)]
    rows += [(finding["level"], finding_line(planned, finding)) for finding in planned.document["findings"]]
    rows += [("price", price_line(decided.cost))]
    head = " + ".join(f"{group.count} × {group.name}" for group in decided.groups)
    lines = [f"{decided.stack} · {decided.place} · {head}", ""]
    lines += [f"  {name:<12} {value}" for name, value in rows]
    return "\n".join([*lines, f"  {len(planned.document['resources'])} resources · nothing created"])


def finding_line(planned: Planned, finding: dict[str, str]) -> str:
    """A rule's finding with its place in the stack file; the policy's with the resource that it is about."""
    by_rule = next((told for told in planned.decided.findings if told.to_json() == finding), None)
    return described(by_rule, planned.file) if by_rule else "{path}: {message} [{rule}]".format(**finding)


def price_line(cost: Cost) -> str:
    parts = [f"{cost.hourly:.2f} {cost.currency}/h"]
    if cost.hourly_max > cost.hourly:
        parts.append(f"at most {cost.hourly_max:.2f}")
    if cost.per_gpu_hour is not None:
        parts.append(f"{cost.per_gpu_hour:.2f} {cost.currency}/GPU-h")
    if cost.per_pflop_hour is not None:
        parts.append(f"{cost.per_pflop_hour:.2f} {cost.currency}/PFLOP-h (bf16)")
    return " · ".join(parts)
