"""What was decided: a stack file becomes a finished plan, checked by every preflight rule of its cloud."""

from infra.plan.decide import decide, described
from infra.plan.plan import Finding, LocalPlan, Plan

__all__ = ["Finding", "LocalPlan", "Plan", "decide", "described"]
