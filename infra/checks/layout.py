"""Layout errors as findings: each error of the planner is recorded, and planning continues with a fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from infra.plan.layout import LayoutError
from infra.plan.model import Finding

T = TypeVar("T")


class Refusals:
    """What was refused so far, so that one run reports all of it."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def decided(self, path: str, decision: Callable[[], T], otherwise: T) -> T:
        """The decision; where a layout refuses it, `otherwise`, with an error finding at the stack file's key path."""
        try:
            return decision()
        except LayoutError as refusal:
            self.findings.append(Finding(level="error", rule=refusal.rule, path=path, message=str(refusal)))
            return otherwise
