"""What no stack may declare: rules over rendered resources, for the plan, for tests and for the engine's policy pack.

A rule is a plain function over one resource and the stack around it. It reads Pulumi's wire names and never asks a
cloud; what it cannot read (an unknown, a secret) it does not take for safe.
"""

from infra.graph.policy import (
    addresses,
    buckets,
    disks,
    fleets,
    iam,
    metadata,
    providers,
    ssh,
    tags,
    user_data,
)
from infra.graph.policy.rule import RULES, Resource, Rule, check

__all__ = ["RULES", "Resource", "Rule", "check"]

_ = addresses, buckets, disks, fleets, iam, metadata, providers, ssh, tags, user_data  # importing them registers rules
