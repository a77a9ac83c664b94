"""`gpufleet plan`: what a stack would create and cost, rendered in this process; compared with another plan; drawn."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from infra.evaluate import Evaluation, decide, described
from infra.gc_pause import uncollected
from infra.plan.model import HOURS_PER_MONTH, Cost, Plan
from infra.plan.summary import summary_of
from infra.printable import escaped
from infra.spec import StackFile
from infra.spec.cluster import Budget
from ops import stack as stacks
from ops.console.terminal import Json, Stack, show
from ops.errors import CommandError
from ops.project import Project

RUNS = {"this computer": "runs here", "nodes as root": "runs as root"}  # by where a command runs


@dataclass(frozen=True)
class Planned:
    """A stack's file, its plan, and the document of `--json`.

    The document of a plan that was compared with another has the `difference`, too.
    """

    file: StackFile
    decided: Plan
    document: dict[str, Any]

    @property
    def refused(self) -> bool:
        """Whether a check of the plan, or the policy on its resources, found an error."""
        return any(finding["level"] == "error" for finding in self.document["findings"])


def command(
    stack: Stack,
    against: Annotated[
        str | None,
        typer.Option(metavar="REF|FILE", help="show what differs from a git commit, or from a saved --json plan"),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="draw the topology, with prices", dir_okay=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a stack would create and cost; creates nothing, needs no credentials."""
    planned = plan(Project.find(), stack, against)
    if picture is not None:
        draw(planned, picture)
    show(planned.document, as_json, lambda _: text(planned))
    if planned.refused:
        raise typer.Exit(1)


def plan(project: Project, stack: str, against: str | None = None) -> Planned:
    """against: a git ref, or the file of a saved `--json` plan.

    Raises CommandError (code 2) for a wrong stack file and for an `against` that is not a plan of this stack; a refused
    plan is returned with its findings.
    """
    with uncollected():
        return _plan(project, stack, against)


def _plan(project: Project, stack: str, against: str | None) -> Planned:
    file = stacks.read(project, stack)
    decided = decide(file)
    from infra import graph  # imports the engine's SDK: only once the file is known to be valid

    evaluation = Evaluation(file, decided)
    if against is None:
        return Planned(file, decided, graph.plan_document(project.root, stack, evaluation))
    from infra.graph import diff
    from ops.engine import baseline

    with baseline.document(project, stack, against) as before:
        document = graph.plan_document(project.root, stack, evaluation)
        difference = diff.difference(before(), document)
    return Planned(file, decided, {**document, "against": against, "difference": difference})


def draw(planned: Planned, file: Path) -> None:
    """Writes the topology as SVG. Raises CommandError for a file that cannot be written."""
    from infra.graph import picture

    try:
        file.write_text(picture.draw(planned.decided))
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None


def text(planned: Planned) -> str:
    """The plan as a person reads it: network, groups, storage, access, findings, price."""
    decided, document, summary = planned.decided, planned.document, summary_of(planned.decided)
    if "difference" in document:
        from infra.graph import diff

        return diff.text(document)
    rows = [
        *summary.rows,
        *(
            (RUNS[command["where"]], f"{command['when']}: {shlex.join(command['argv'])}")
            for command in document["commands"]
        ),
        *((finding["level"], finding_line(planned, finding)) for finding in document["findings"]),
        ("price", price_line(decided.cost)),
        ("month", month_line(decided.cost, planned.file.spec.budget)),
    ]
    lines = [escaped(summary.headline), "", *(f"  {name:<12} {escaped(value)}" for name, value in rows if value)]
    count = sum(row["custom"] for row in document["resources"])  # components are names for what is in them
    picture = f"picture: gpufleet plan {decided.stack} --picture plan.svg"
    return "\n".join([*lines, f"  {count} resources · nothing created · {picture}"])


def finding_line(planned: Planned, finding: dict[str, str]) -> str:
    """A check's finding with its line in the stack file; the policy's with its resource."""
    by_rule = next((item for item in planned.decided.findings if item.to_json() == finding), None)
    return described(by_rule, planned.file) if by_rule else "{path}: {message} [{rule}]".format(**finding)


def price_line(cost: Cost) -> str:
    """The price of an hour, its items, and the price of work."""
    if cost.unknown:
        return f"unknown: {cost.unknown}"
    parts = [f"{cost.hourly:,.2f} {cost.currency}/h"]
    if len(shares := cost.shares) > 1:
        parts[0] += f" ({' + '.join(f'{name} {usd:,.2f}' for name, usd in shares.items())})"
    if cost.hourly_max > cost.hourly:
        parts.append(f"at most {cost.hourly_max:,.2f}")
    if cost.per_gpu_hour is not None:
        parts.append(f"{cost.per_gpu_hour:.2f} {cost.currency}/GPU-h")
    if cost.per_pflop_hour is not None:
        parts.append(f"{cost.per_pflop_hour:.2f} {cost.currency}/PFLOP-h (bf16)")
    return " · ".join(parts)


def month_line(cost: Cost, budget: Budget | None) -> str:
    """The price of a month, and whether the highest one is within the budget; empty for what costs nothing."""
    if not cost.hourly_max:
        return ""
    most = f" · at most {cost.monthly_max:,.0f}" if cost.hourly_max > cost.hourly else ""
    limits = [("h", cost.hourly_max, budget.hourly), ("month", cost.monthly_max, budget.monthly)] if budget else []
    verdicts = [
        f" · budget {limit:,.10g} {cost.currency}/{period} {'ok' if most_of <= limit else 'EXCEEDED'}"
        for period, most_of, limit in limits
        if limit is not None
    ]
    return f"{cost.monthly:,.0f} {cost.currency} ({HOURS_PER_MONTH} h){most}{''.join(verdicts)}"
