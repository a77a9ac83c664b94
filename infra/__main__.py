"""The Pulumi program: evaluate the stack file, refuse what cannot be, declare, export the handover."""

from __future__ import annotations

from pathlib import Path

import pulumi

from infra import registry
from infra.evaluate import evaluate
from infra.plan.model import Plan
from infra.spec import SpecError


def main() -> None:
    """Raises RunError, one line a mistake, before anything is declared."""
    root = Path(pulumi.get_root_directory())
    try:
        evaluation = evaluate(root, pulumi.get_stack())
    except SpecError as mistakes:
        raise pulumi.RunError(str(mistakes)) from None
    if evaluation.errors:
        raise pulumi.RunError("\n".join(evaluation.errors))
    declare(evaluation.plan, root)


def declare(plan: Plan, root: Path) -> None:
    """Declares the resources of a plan without errors, and exports the handover."""
    pulumi.export("cluster", registry.part(registry.cloud(plan.cloud).resources)(plan, root))


if __name__ == "__main__":
    main()
