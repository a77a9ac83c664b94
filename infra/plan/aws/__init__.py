"""A cluster on AWS: what was decided (`AwsPlan` and its parts) and the decision itself (`decide`)."""

from infra.plan.aws.capacity import (
    Capacity,
    CapacityBlock,
    Elastic,
    Gang,
    Managed,
    Market,
    OnDemand,
    Purchase,
    Reservation,
    Single,
    Spot,
)
from infra.plan.aws.decide import decide
from infra.plan.aws.eks_plan import AddonPlan, EksPlan
from infra.plan.aws.plan import (
    AwsAccessPlan,
    AwsGroupPlan,
    AwsNetworkPlan,
    AwsPlan,
    BudgetPlan,
    EndpointPlan,
    EventPlan,
    FlowLogPlan,
    ImagePlan,
    InterruptionPlan,
    KeyPlan,
    LustrePlan,
    SubnetPlan,
)
from infra.plan.rented import BucketPlan, Retention, StorePlan
from infra.plan.statement import Resource, Statement

__all__ = [
    "AddonPlan",
    "AwsAccessPlan",
    "AwsGroupPlan",
    "AwsNetworkPlan",
    "AwsPlan",
    "BucketPlan",
    "BudgetPlan",
    "Capacity",
    "CapacityBlock",
    "EksPlan",
    "Elastic",
    "EndpointPlan",
    "EventPlan",
    "FlowLogPlan",
    "Gang",
    "ImagePlan",
    "InterruptionPlan",
    "KeyPlan",
    "LustrePlan",
    "Managed",
    "Market",
    "OnDemand",
    "Purchase",
    "Reservation",
    "Resource",
    "Retention",
    "Single",
    "Spot",
    "Statement",
    "StorePlan",
    "SubnetPlan",
    "decide",
]
