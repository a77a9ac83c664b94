"""What `up` does when a fleet is not to be had, or not whole any more: the request withdrawn, or on demand for spot.

Sources: EC2 API, CreateFleet and DescribeFleets (an instant fleet without capacity is made all the same, without
instances, and never filled; it tells what it launched and why not more) and DeleteFleets (one of these takes its
instances with it); EC2 User Guide, "Modify an EC2 Fleet" (of a fleet that is maintained the parts that are on demand
and on spot can be changed while it runs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.clouds.aws.plan.capacity import Gang, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan, AwsPlan
from ops.clouds.aws.account import Account
from ops.clouds.aws.tagged_resources import Instance, instances, things
from ops.errors import CommandError


def delivered(account: Account, plan: AwsPlan) -> None:
    """Withdraws each gang that was asked for at once and not given whole, so that the next `up` asks anew.

    Raises CommandError when there is one. A member that ended later is no reason: the others may be at work.
    """
    said = []
    for group in plan.groups:
        if refills_never(group):
            for fleet in _described(account, _fleets(account, plan, group)):
                launched = sum(len(each["InstanceIds"]) for each in fleet.get("Instances", ()))
                if launched < group.count:
                    account.client("ec2").delete_fleets(FleetIds=[fleet["FleetId"]], TerminateInstances=True)
                    said.append(f"{group.name}: AWS gives {launched} of {group.count} {group.type}{_reasons(fleet)}")
    if said:
        again = f"`gpufleet up {plan.stack}` asks again; another zone, type or market in the stack file may have them"
        rest = f"nothing of it is left; what else the stack has costs on until `gpufleet down {plan.stack}`"
        raise CommandError(*said, f"the request is withdrawn: {again}", rest)


def renew(account: Account, plan: AwsPlan, name: str) -> str:
    """Ends what is left of a gang that AWS does not refill, so that it is asked for anew, whole; says what ended.

    Raises CommandError for a group that is none.
    """
    group = renewable(plan, name)
    left = [each for each in instances(account, plan.tags) if _of(group, each)]
    if fleets := _fleets(account, plan, group):
        account.client("ec2").delete_fleets(FleetIds=fleets, TerminateInstances=True)
    return f"{name}: {len(left)} of {group.count} nodes ended, all of them are asked for anew"


def renewable(plan: AwsPlan, name: str) -> AwsGroupPlan:
    """The gang of this name that AWS does not refill. Raises CommandError when there is none."""
    gangs = {group.name: group for group in plan.groups if refills_never(group)}
    if name not in gangs:
        has = ", ".join(gangs) or "none"
        raise CommandError(
            f"--renew {name}: is no group that is bought at once, of which {plan.stack} has {has}", code=2
        )
    return gangs[name]


def refills_never(group: AwsGroupPlan) -> bool:
    """Whether AWS starts no other node for one that has ended."""
    return isinstance(group.capacity, Gang) and group.capacity.fleet_type == "instant"


def fall_back(account: Account, plan: AwsPlan) -> Iterator[str]:
    """Gangs on spot whose stack file names a fallback get their missing nodes on demand; those that they have stay."""
    for group in plan.groups:
        if not (isinstance(group.capacity, Gang) and isinstance(group.market, Spot) and group.market.fallback):
            continue
        here = [each for each in instances(account, plan.tags) if _of(group, each)]
        if missing := max(0, group.count - len(here)):
            _divide(account, plan, group, missing + sum(not each.spot for each in here))
            yield f"{group.name}: {len(here)} of {group.count} nodes on spot; the other {missing} are bought on demand"


def _described(account: Account, fleets: list[str]) -> list[Mapping[str, Any]]:
    return account.client("ec2").describe_fleets(FleetIds=fleets)["Fleets"] if fleets else []


def _reasons(fleet: Mapping[str, Any]) -> str:
    """In AWS's own words, which are the same for each node."""
    words = dict.fromkeys(each["ErrorMessage"] for each in fleet.get("Errors", ()))
    return f": {' '.join(words)}" if words else ""


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
    """There is one, under the name that the program gives it."""
    found = things(account, plan.tags)
    return [each.id for each in found if (each.kind, each.name) == ("ec2/fleet", f"{group.name}-fleet")]


def _of(group: AwsGroupPlan, instance: Instance) -> bool:
    return group.tags.items() <= instance.tags.items() and instance.state in {"pending", "running"}
