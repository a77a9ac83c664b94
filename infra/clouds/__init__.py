"""The one place that knows which folder declares which cloud: the folder has the cloud's name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pulumi

from infra.plan.plan import Plan


def declare(plan: Plan, root: Path) -> pulumi.Output[dict[str, Any]]:
    """Declares the plan's resources and returns the handover as plain JSON.

    Only the plan's own cloud is imported: a provider package costs up to a second and tens of megabytes.
    """
    return import_module(f"infra.clouds.{plan.cloud}.declare").declare(plan, root)
