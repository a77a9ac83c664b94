"""AWS stack files in a temporary project."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.aws.plan.model import AwsPlan
from infra.evaluate import decide
from infra.spec import StackFile, load

REPOSITORY = Path(__file__).resolve().parents[3]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA nobody"

SSH = f'{{ssh_from: [203.0.113.0/24], public_key: "{KEY}"}}'
HEAD = "{name: head, type: m6i.large, count: 1}"
BUCKET, LUSTRE = "{name: d, kind: bucket, mount: /d}", "{name: f, kind: lustre, mount: /f, size_gib: 19200, efa: true}"

# One key of the cluster a line, so that a test can replace or leave out any of them.
PARTS = {
    "cloud": "aws",
    "region": "us-east-1",
    "zone": "us-east-1d",
    "network": "{cidr: 10.40.0.0/16}",
    "access": "{ssm: true}",
    "nodes": "[{name: a, type: p4d.24xlarge, count: 4}]",
}


def cluster(**changes: str | None) -> str:
    """A cluster that no rule objects to, with these keys instead of its own; None leaves a key out."""
    return "\n".join(f"{key}: {text}" for key, text in {**PARTS, **changes}.items() if text is not None)


def group(**changes: object) -> str:
    """The value of `nodes`: one group of four A100 nodes, with these keys instead of its own."""
    keys = {"name": "a", "type": "p4d.24xlarge", "count": 4, **changes}
    return "[{" + ", ".join(f"{key}: {value}" for key, value in keys.items() if value is not None) + "}]"


def with_head(**changes: object) -> str:
    """The value of `nodes`: a head, and `group(**changes)`."""
    return f"[{HEAD}, {group(**changes)[1:]}"


@dataclass(frozen=True)
class Project:
    """A folder that Pulumi would take for a project."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Project:
        shutil.copy(REPOSITORY / "Pulumi.yaml", root)
        (root / "stacks").mkdir()
        return cls(root)

    def write(self, content: str) -> None:
        (self.root / "stacks" / "Pulumi.x.yaml").write_text(content)

    def load(self, cluster: str) -> StackFile:
        lines = ("    " + line for line in cluster.splitlines())
        self.write("\n".join(["config:", "  gpufleet:cluster:", *lines, ""]))
        return load(self.root, "x")

    def plan(self, **changes: str | None) -> AwsPlan:
        """The plan of `cluster(**changes)`."""
        plan = decide(self.load(cluster(**changes)))
        assert isinstance(plan, AwsPlan)
        return plan
