"""`gpufleet plan`: what a stack would create and cost, rendered in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infra.plan import decide, described
from infra.plan.plan import Cost, GroupPlan, Plan
from infra.spec import StackFile
from ops import cluster
from ops.project import Project


@dataclass(frozen=True)
class Planned:
    """A stack's file, what was decided of it, and the document of `--json` (the design's contract)."""

    file: StackFile
    decided: Plan
    document: dict[str, Any]


def plan(project: Project, stack: str) -> Planned:
    """Raises Failure (code 2) for a wrong stack file; a plan that a rule refuses is told with its findings."""
    file = cluster.read(project, stack)
    decided = decide(file)
    from infra import graph  # pulls in the engine's SDK: only once the file is known to be sound

    return Planned(file, decided, graph.plan_document(project.root, stack))


def text(planned: Planned) -> str:
    """The plan as a person reads it: network, groups, storage, access, findings, price."""
    decided = planned.decided
    rows = [("network", f"{decided.network.cidr}   this computer is {decided.network.gateway}")]
    rows += [(group.name, group_line(group)) for group in decided.groups]
    rows += [("storage", f"{store.kind} {store.name} → {store.mount}") for store in decided.storage]
    rows += [("access", f"the stack's own key{f' and {n} more' if (n := len(decided.access.public_keys)) else ''}")]
    rows += [(finding.level, described(finding, planned.file)) for finding in decided.findings]
    rows += [("price", price_line(decided.cost))]
    head = " + ".join(f"{group.count} × {group.name}" for group in decided.groups)
    lines = [f"{decided.stack} · {decided.place} · {head}", ""]
    lines += [f"  {name:<12} {value}" for name, value in rows]
    return "\n".join([*lines, f"  {len(planned.document['resources'])} resources · nothing created"])


def group_line(group: GroupPlan) -> str:
    hardware = f"{group.gpus_per_node} × {group.gpu} each" if group.gpu else "no GPU"
    first, last = group.nodes[0], group.nodes[-1]
    return f"{hardware} · {first.address}{f' … {last.address}' if last != first else ''} port {first.port}"


def price_line(cost: Cost) -> str:
    parts = [f"{cost.hourly:.2f} {cost.currency}/h"]
    if cost.hourly_max > cost.hourly:
        parts.append(f"at most {cost.hourly_max:.2f}")
    if cost.per_gpu_hour is not None:
        parts.append(f"{cost.per_gpu_hour:.2f} {cost.currency}/GPU-h")
    return " · ".join(parts)
