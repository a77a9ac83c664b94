"""The one place that knows which folder declares which cloud: the folder has the cloud's name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.plan.plan import Plan

if TYPE_CHECKING:
    import pulumi  # for its name alone: who asks a folder below what is left behind need not wait for the SDK


def declare(plan: Plan, root: Path) -> pulumi.Output[dict[str, Any]]:
    """Declares the plan's resources and returns the handover as plain JSON.

    Only the plan's own cloud is imported: a provider package costs up to a second and tens of megabytes.
    """
    return import_module(f"infra.clouds.{plan.cloud}.declare").declare(plan, root)
