"""What a plan takes for granted, asked of Alibaba Cloud before anything is made: zones, stock, who measures the load.

Sources: ECS API, DescribeAvailableResource (per zone and type a status and a stock category: `ClosedWithStock` will be
filled up again, `WithoutStock` is sold out). "With stock" is no promise: an elastic quota may be nought all the same.
Auto Scaling User Guide, "Event-triggered tasks of the system monitoring type" (the load of GPUs is told by
CloudMonitor's agent alone, which new instances get where the account says so); CloudMonitor API,
DescribeMonitoringAgentConfig and PutMonitoringConfig.
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.alicloud.plan.capacity import Elastic, Spot
from infra.clouds.alicloud.plan.model import AlicloudGroupPlan, AlicloudPlan
from infra.plan.model import Finding
from ops.clouds.alicloud.account import Account


def findings(account: Account, plan: AlicloudPlan) -> Iterator[Finding]:
    """Errors would fail, warnings may."""
    zones = {each.name: each.zone for each in plan.network.vswitches}
    for i, group in enumerate(plan.groups):
        wanted = {zones[name] for name in group.vswitches}
        path = f"cluster.nodes[{i}].type"
        stock = _stock(account, group)
        if not wanted & stock.keys():
            sold = f"it is sold in {', '.join(sorted(stock))}" if stock else "no zone of the region sells it"
            message = f"{group.type} is not sold in {', '.join(sorted(wanted))}; {sold}"
            yield Finding(level="error", rule="live-offering", path=path, message=message)
        elif all(stock.get(zone) == "WithoutStock" for zone in wanted):
            yield Finding(
                level="warning", rule="live-stock", path=path, message=f"{group.type} is sold out at the moment"
            )
    yield from _unmeasured(account, plan)


def _unmeasured(account: Account, plan: AlicloudPlan) -> Iterator[Finding]:
    """Groups that would stay at their least. An image of one's own may bring the agent; a public one does not."""
    bare = [
        i
        for i, each in enumerate(plan.groups)
        if isinstance(each.capacity, Elastic) and not (each.image.recorded or "").startswith("m-")
    ]
    if bare and not account.call("cms", "DescribeMonitoringAgentConfig").get("EnableInstallAgentNewECS"):
        lacking = "the account puts no CloudMonitor agent on new instances, so nothing would tell the load of the GPUs"
        remedy = "`aliyun cms PutMonitoringConfig --EnableInstallAgentNewECS true`, or `count` for `min` and `max`"
        for i in bare:
            path, message = f"cluster.nodes[{i}].max", f"{lacking}: {remedy}"
            yield Finding(level="error", rule="live-agent", path=path, message=message)


def _stock(account: Account, group: AlicloudGroupPlan) -> dict[str, str]:
    """By zone that sells the type, its stock category."""
    spot = {"SpotStrategy": group.market.strategy} if isinstance(group.market, Spot) else {}
    asked = {"DestinationResource": "InstanceType", "InstanceType": group.type, "IoOptimized": "optimized", **spot}
    told = account.call("ecs", "DescribeAvailableResource", InstanceChargeType="PostPaid", **asked)
    zones = told.get("AvailableZones", {}).get("AvailableZone", ())
    return {each["ZoneId"]: each.get("StatusCategory", "") for each in zones if each.get("Status") == "Available"}
