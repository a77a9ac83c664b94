"""Policy rules on VPCs: a stack has a VPC of its own with flow logs, and never uses the account's default one.

Sources: CIS AWS Foundations Benchmark, "the default security group of every VPC restricts all traffic" and "VPC flow
logging is enabled in all VPCs".
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.aws.policy.network.openings import DEFAULT_GROUP
from infra.clouds.aws.policy.types import VPC
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import items

FLOW_LOG = "aws:ec2/flowLog:FlowLog"
DEFAULTS = ("aws:ec2/defaultVpc:DefaultVpc", "aws:ec2/defaultSubnet:DefaultSubnet")


@rule("no-default-network", *DEFAULTS)
def no_default_network(resource: Resource) -> Iterator[Violation]:
    """Nothing stands in the account's default network, where every machine has an address of the internet."""
    yield "", "is the account's own, public by default and shared with whatever else is there; make a VPC"


@rule("closed-default-group", DEFAULT_GROUP)
def closed_default_group(resource: Resource) -> Iterator[Violation]:
    """The default security group lets nothing through: whoever forgets to name a group gets it."""
    for key in ("ingress", "egress"):
        if items(resource.inputs.get(key)):
            yield key, "must be empty: whatever names no group is in this one"


@stack_rule("vpc-has-a-flow-log")
def vpc_has_a_flow_log(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A VPC keeps a record of who spoke to whom."""
    for vpc in stack.of(VPC):
        if not list(stack.about(vpc, FLOW_LOG, "vpcId")):
            yield vpc, "", "needs a flow log: nobody could tell afterwards who came in"
