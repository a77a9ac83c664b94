"""Alibaba Cloud stack files in a temporary project."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.evaluate import decide
from infra.spec import StackFile, load

REPOSITORY = Path(__file__).resolve().parents[3]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA nobody"
SSH = f'{{ssh_from: [203.0.113.0/24], public_key: "{KEY}"}}'
HEAD = "{name: head, type: ecs.g7.large, count: 1}"
SYSTEM = "{name: system, type: ecs.g7.xlarge, count: 2}"

# One key of the cluster a line, so that a test can replace or leave out any of them.
PARTS = {
    "cloud": "alicloud",
    "region": "cn-beijing",
    "zone": "cn-beijing-l",
    "network": "{cidr: 10.40.0.0/16}",
    "access": SSH,
    "nodes": f"[{HEAD}, {{name: a, type: ecs.ebmgn7ex.32xlarge, count: 4, queue_pairs: 8192}}]",
}


def cluster(**changes: str | None) -> str:
    """A cluster that no rule objects to, with these keys instead of its own; None leaves a key out."""
    return "\n".join(f"{key}: {text}" for key, text in {**PARTS, **changes}.items() if text is not None)


def group(first: str = HEAD, **changes: object) -> str:
    """The value of `nodes`: `first`, and four A100 nodes with two eRDMA interfaces, with these keys instead."""
    keys = {"name": "a", "type": "ecs.ebmgn7ex.32xlarge", "count": 4, "queue_pairs": 8192, **changes}
    written = "{" + ", ".join(f"{key}: {value}" for key, value in keys.items() if value is not None) + "}"
    return f"[{first}, {written}]" if first else f"[{written}]"


@dataclass(frozen=True)
class Project:
    """A folder that Pulumi would take for a project."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Project:
        shutil.copy(REPOSITORY / "Pulumi.yaml", root)
        (root / "stacks").mkdir()
        return cls(root)

    def load(self, cluster: str) -> StackFile:
        lines = ("    " + line for line in cluster.splitlines())
        text = "\n".join(["config:", "  gpufleet:cluster:", *lines, ""])
        (self.root / "stacks" / "Pulumi.x.yaml").write_text(text)
        return load(self.root, "x")

    def plan(self, **changes: str | None) -> AlicloudPlan:
        """The plan of `cluster(**changes)`."""
        plan = decide(self.load(cluster(**changes)))
        assert isinstance(plan, AlicloudPlan)
        return plan
