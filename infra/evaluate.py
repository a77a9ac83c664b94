"""A stack file becomes a finished, checked plan; pure, so that the same file is always the same plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from infra import registry
from infra.checks import check
from infra.plan.model import Finding, Plan
from infra.spec import StackFile, load


@dataclass(frozen=True)
class Evaluation:
    """A stack file with its plan, which holds the findings of all checks."""

    file: StackFile
    plan: Plan

    @property
    def errors(self) -> tuple[str, ...]:
        """One line for each finding that forbids declaring the plan."""
        return tuple(described(finding, self.file) for finding in self.plan.errors)


def evaluate(root: Path, stack: str) -> Evaluation:
    """Loads, plans and checks a stack of the project at `root`. Raises SpecError for a stack file that is wrong."""
    file = load(root, stack)
    return Evaluation(file, decide(file))


def decide(file: StackFile) -> Plan:
    """The plan of a stack file, with the findings of all checks; a plan with errors must not be declared."""
    plan: Plan = registry.part(registry.cloud(file.cloud).plan)(file.stack, file.spec)
    return replace(plan, findings=(*plan.findings, *check(file.spec, plan)))


def described(finding: Finding, file: StackFile) -> str:
    """A finding as one line: `stacks/Pulumi.x.yaml:14 cluster.nodes[1].count: …`."""
    return f"{file.path.as_posix()}:{file.locate(finding.path)} {finding.path}: {finding.message} [{finding.rule}]"
