"""The refusals of the layouts as findings: a decision that is refused is noted, and deciding goes on with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from infra.plan.firewall import OpenToTheWorld
from infra.plan.model import Finding
from infra.plan.nics import NoFabric
from infra.plan.placement import Misplaced
from infra.plan.subnets import NoRoom
from infra.plan.volumes import BadVolume

# The rule that each kind of refusal is named by; its facts and sources stand with the layout that raises it.
RULES: dict[type[ValueError], str] = {
    NoFabric: "fabric-fits-the-type",
    OpenToTheWorld: "ssh-is-not-open-to-the-world",
    Misplaced: "placement-is-possible",
    NoRoom: "network-holds-the-subnets",
    BadVolume: "volume-exists",
}

T = TypeVar("T")


class Refusals:
    """What was refused so far, so that one run reports all of it."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def decided(self, path: str, decision: Callable[[], T], otherwise: T) -> T:
        """The decision; where a layout refuses it, `otherwise`, with an error finding at the stack file's key path."""
        try:
            return decision()
        except tuple(RULES) as refusal:
            finding = Finding(level="error", rule=RULES[type(refusal)], path=path, message=str(refusal))
            self.findings.append(finding)
            return otherwise
