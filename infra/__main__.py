"""The Pulumi program: load the stack file, decide, refuse what cannot be, declare, tell."""

from __future__ import annotations

from pathlib import Path

import pulumi

from infra import clouds
from infra.plan import decide, described
from infra.spec import SpecError, load


def main() -> None:
    """Raises RunError, one line a mistake, before anything is declared."""
    root = Path(pulumi.get_root_directory())
    try:
        file = load(root, pulumi.get_stack())
    except SpecError as mistakes:
        raise pulumi.RunError(str(mistakes)) from None
    plan = decide(file)
    if plan.errors:
        raise pulumi.RunError("\n".join(described(finding, file) for finding in plan.errors))
    pulumi.export("cluster", clouds.declare(plan, root))


if __name__ == "__main__":
    main()
