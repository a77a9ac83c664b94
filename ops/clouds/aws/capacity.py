"""What `up` does when a fleet is unavailable or incomplete: cancel the request, or buy on demand instead of spot.

Sources: EC2 API, CreateFleet and DescribeFleets (an instant fleet without capacity is created all the same, without
instances, and never filled; it lists what it launched and why not more) and DeleteFleets (one of these takes its
instances with it); EC2 User Guide, "Modify an EC2 Fleet" (of a fleet that is maintained the parts that are on demand
and on spot can be changed while it runs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.clouds.aws.plan.capacity import FixedSize, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan, AwsPlan
from ops.clouds.aws.account import Account
from ops.clouds.aws.tagged_resources import Instance, instances, resources
from ops.errors import CommandError


def require_capacity(account: Account, plan: AwsPlan) -> None:
    """Cancels each instant fleet that AWS did not launch whole, so that the next `up` requests it again.

    Raises CommandError when there is one. A node that ended later does not count: the others may be running a job.
    """
    shortfalls = []
    for group in plan.groups:
        if refills_never(group):
            for fleet in _described(account, _fleets(account, plan, group)):
                launched = sum(len(launch["InstanceIds"]) for launch in fleet.get("Instances", ()))
                if launched < group.count:
                    account.client("ec2").delete_fleets(FleetIds=[fleet["FleetId"]], TerminateInstances=True)
                    shortfalls.append(
                        f"{group.name}: AWS launched {launched} of {group.count} {group.type}{_reasons(fleet)}"
                    )
    if shortfalls:
        remedy = f"`gpufleet up {plan.stack}` requests it again; another zone, type or market may have capacity"
        rest = f"no node of it is left; the rest of the stack costs money until `gpufleet down {plan.stack}`"
        raise CommandError(*shortfalls, f"the request is cancelled: {remedy}", rest)


def renew(account: Account, plan: AwsPlan, name: str) -> str:
    """Terminates what is left of a fleet that AWS does not refill, so that it is requested again, whole; returns a
    summary. Raises CommandError for any other group.
    """
    group = renewable(plan, name)
    left = [instance for instance in instances(account, plan.tags) if _of(group, instance)]
    if fleets := _fleets(account, plan, group):
        account.client("ec2").delete_fleets(FleetIds=fleets, TerminateInstances=True)
    return f"{name}: {len(left)} of {group.count} nodes terminated, all of them are requested again"


def renewable(plan: AwsPlan, name: str) -> AwsGroupPlan:
    """The group of this name, whose fleet AWS does not refill. Raises CommandError when there is none."""
    gangs = {group.name: group for group in plan.groups if refills_never(group)}
    if name not in gangs:
        has = ", ".join(gangs) or "none"
        raise CommandError(f"--renew {name}: is not a group that is bought at once; {plan.stack} has {has}", code=2)
    return gangs[name]


def refills_never(group: AwsGroupPlan) -> bool:
    """Whether AWS does not replace a node that has ended."""
    return isinstance(group.capacity, FixedSize) and group.capacity.fleet_type == "instant"


def fall_back(account: Account, plan: AwsPlan) -> Iterator[str]:
    """Buys the missing nodes of spot fleets with a fallback on demand; existing nodes stay."""
    for group in plan.groups:
        if not (isinstance(group.capacity, FixedSize) and isinstance(group.market, Spot) and group.market.fallback):
            continue
        here = [instance for instance in instances(account, plan.tags) if _of(group, instance)]
        if missing := max(0, group.count - len(here)):
            _divide(account, plan, group, missing + sum(not instance.spot for instance in here))
            yield f"{group.name}: {len(here)} of {group.count} nodes on spot; the other {missing} are bought on demand"


def _described(account: Account, fleets: list[str]) -> list[Mapping[str, Any]]:
    return account.client("ec2").describe_fleets(FleetIds=fleets)["Fleets"] if fleets else []


def _reasons(fleet: Mapping[str, Any]) -> str:
    """AWS's error messages, which are the same for each node."""
    messages = dict.fromkeys(error["ErrorMessage"] for error in fleet.get("Errors", ()))
    return f": {' '.join(messages)}" if messages else ""


def _divide(account: Account, plan: AwsPlan, group: AwsGroupPlan, on_demand: int) -> None:
    for fleet in _fleets(account, plan, group):
        account.client("ec2").modify_fleet(
            FleetId=fleet,
            TargetCapacitySpecification={
                "TotalTargetCapacity": group.count,
                "OnDemandTargetCapacity": on_demand,
                "SpotTargetCapacity": group.count - on_demand,
            },
        )


def _fleets(account: Account, plan: AwsPlan, group: AwsGroupPlan) -> list[str]:
    """The ids of the group's fleets: one, under the name that the program gives it."""
    tagged = resources(account, plan.tags)
    return [
        resource.id for resource in tagged if (resource.kind, resource.name) == ("ec2/fleet", f"{group.name}-fleet")
    ]


def _of(group: AwsGroupPlan, instance: Instance) -> bool:
    return group.tags.items() <= instance.tags.items() and instance.state in {"pending", "running"}
