"""What no stack may declare: rules over rendered resources, for the plan, for tests and for the engine's policy pack.

A rule is a plain function over one resource, or over all of them where only together they tell. It reads Pulumi's wire
names and never asks a cloud; what it cannot read (an unknown, a secret) it does not take for safe.
"""

from infra.graph.policy import (
    addresses,
    alicloud_keeping,
    alicloud_network,
    alicloud_nodes,
    alicloud_rights,
    buckets,
    cost,
    credentials,
    deletion,
    disks,
    fleets,
    iam,
    kubernetes,
    metadata,
    network,
    pods,
    providers,
    sharing,
    ssh,
    tags,
    trust,
    user_data,
)
from infra.graph.policy.rule import RULES, Resource, ResourceRule, Rule, Stack, StackRule, check, summary

__all__ = ["RULES", "Resource", "ResourceRule", "Rule", "Stack", "StackRule", "check", "summary"]

# Importing them registers their rules.
_ = addresses, buckets, cost, credentials, deletion, disks, fleets, iam, metadata
_ = alicloud_keeping, alicloud_network, alicloud_nodes, alicloud_rights
_ = kubernetes, network, pods, providers, sharing, ssh, tags, trust, user_data
