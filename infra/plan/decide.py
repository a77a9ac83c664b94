"""From what was asked to what will be: pure, so that the same file is always the same plan."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from infra.plan.plan import Finding, Plan
from infra.plan.rules import check
from infra.spec import StackFile


def decide(file: StackFile) -> Plan:
    """The plan of a stack file, with what every preflight rule found; a plan with errors must not be declared."""
    plan: Plan = import_module(f"infra.plan.{file.spec.cloud}").decide(file.stack, file.spec)
    return replace(plan, findings=(*plan.findings, *check(file.spec, plan)))


def described(finding: Finding, file: StackFile) -> str:
    """A finding as one line: `stacks/Pulumi.x.yaml:14 cluster.nodes[1].count: …`."""
    return f"{file.path.as_posix()}:{file.locate(finding.path)} {finding.path}: {finding.message} [{finding.rule}]"
