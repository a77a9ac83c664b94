"""What nodes run as root when they start, as the rendered resources hold it: scripts, and playbooks that they fetch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from infra.graph.diff.values import Lines, opened
from infra.plan.commands import BOOT, CommandPlan, as_root

Row = Mapping[str, Any]
BUNDLES = "bundles/"  # where a stack's own bucket holds its playbooks; the name is the content's sha256


def boot_commands(rows: Sequence[Row]) -> Iterator[CommandPlan]:
    """Each once, by its sha256: of a script without the data in it (the lines that are JSON), which the difference of
    the resources shows key by key."""
    return iter(dict.fromkeys(command for row in rows for command in _of(row["inputs"])))


def _of(inputs: Mapping[str, Any]) -> Iterator[CommandPlan]:
    script, key = opened(inputs.get("userData")), inputs.get("key")
    if isinstance(script, Lines):
        text = "\n".join(line for line in script if not line.startswith("{"))
        yield as_root(f"{BOOT}, script", "bash", f"sha256:{sha256(text.encode()).hexdigest()}")
    if isinstance(key, str) and key.startswith(BUNDLES):
        yield as_root(f"{BOOT}, playbooks", "ansible-playbook", f"{key.removeprefix(BUNDLES)}:playbooks/gpu_node.yml")
