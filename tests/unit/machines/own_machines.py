"""Stacks of own machines in a temporary folder: the shipped one, of which a case changes one thing."""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from infra.clouds.machines.plan import MachinesPlan
from infra.evaluate import decide
from infra.spec import load

REPOSITORY = Path(__file__).resolve().parents[3]
SHIPPED: dict[str, Any] = yaml.safe_load((REPOSITORY / "stacks" / "Pulumi.onprem-ib.yaml").read_text())["config"][
    "gpufleet:cluster"
]
HEAD, TRAINER = 0, 1


def shipped() -> dict[str, Any]:
    """The shipped stack's cluster, free to be changed."""
    return copy.deepcopy(SHIPPED)


@dataclass(frozen=True)
class Project:
    """A project with one stack, `x`."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Project:
        shutil.copy(REPOSITORY / "Pulumi.yaml", root)
        (root / "stacks").mkdir()
        (root / "infra").symlink_to(REPOSITORY / "infra")
        return cls(root)

    def plan(self, cluster: dict[str, Any]) -> MachinesPlan:
        file = self.root / "stacks" / "Pulumi.x.yaml"
        file.write_text(yaml.safe_dump({"config": {"gpufleet:cluster": cluster}}))
        plan = decide(load(self.root, "x"))
        assert isinstance(plan, MachinesPlan)
        return plan

    def findings(self, cluster: dict[str, Any]) -> list[tuple[str, str, str]]:
        """(level, rule, path) of every finding."""
        return [(finding.level, finding.rule, finding.path) for finding in self.plan(cluster).findings]
