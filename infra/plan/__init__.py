"""What was decided: a stack file becomes a finished plan, checked by every preflight rule."""

from infra.plan.alicloud import AlicloudPlan
from infra.plan.aws import AwsPlan
from infra.plan.decide import decide, described
from infra.plan.plan import Finding, LocalPlan, Plan

__all__ = ["AlicloudPlan", "AwsPlan", "Finding", "LocalPlan", "Plan", "decide", "described"]
