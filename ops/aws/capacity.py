"""What `up` does when a fleet is not to be had: on demand instead of spot, or the request withdrawn.

Sources: EC2 User Guide, "Modify an EC2 Fleet" (of a fleet that is maintained the parts that are on demand and on spot
can be changed while it runs); EC2 API, CreateFleet (an instant fleet without capacity is made all the same, without
instances, and never filled).
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.plan.aws import AwsGroupPlan, AwsPlan, Gang, Spot
from ops.aws.account import Account
from ops.aws.tagged import Instance, instances, things
from ops.failure import Failure


def fall_back(account: Account, plan: AwsPlan) -> Iterator[str]:
    """Gangs on spot whose stack file names a fallback get their missing nodes on demand; those that they have stay.

    Raises Failure where nothing more will come: the fleet is given up, and the next `up` asks for another one.
    """
    for group in plan.groups:
        here = [each for each in instances(account, plan.tags) if _of(group, each)]
        missing = group.count - len(here)
        if not isinstance(group.capacity, Gang) or missing <= 0:
            continue
        if group.capacity.fleet_type == "instant":
            account.client("ec2").delete_fleets(FleetIds=_fleets(account, plan, group), TerminateInstances=True)
            had = f"AWS gave {len(here)} of {group.count} nodes at once"
            raise Failure(f"{group.name}: {had}, the request is withdrawn: `gpufleet up {plan.stack}` asks again")
        if isinstance(group.market, Spot) and group.market.fallback:
            _divide(account, plan, group, missing + sum(not each.spot for each in here))
            yield f"{group.name}: {len(here)} of {group.count} nodes on spot; the other {missing} are bought on demand"


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
