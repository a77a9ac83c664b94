"""Checks of a plan against the live account, before anything is created: zones, stock, the metrics of elastic groups.

Sources: ECS API, DescribeAvailableResource (per zone and type a status and a stock category: `ClosedWithStock` will be
restocked, `WithoutStock` is sold out). "With stock" is no guarantee: an elastic quota may be 0 all the same.
Auto Scaling User Guide, "Event-triggered tasks of the system monitoring type" (the load of GPUs is reported by
CloudMonitor's agent alone, which new instances get where the account enables it); CloudMonitor API,
DescribeMonitoringAgentConfig and PutMonitoringConfig.
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.alicloud.plan.capacity import Elastic, Spot
from infra.clouds.alicloud.plan.model import AlicloudGroupPlan, AlicloudPlan
from infra.plan.model import Finding
from ops.clouds.alicloud.account import Account


def findings(account: Account, plan: AlicloudPlan) -> Iterator[Finding]:
    """Errors would fail the deployment, warnings may."""
    zones = {vswitch.name: vswitch.zone for vswitch in plan.network.vswitches}
    for i, group in enumerate(plan.groups):
        zones_of_group = {zones[name] for name in group.vswitches}
        path = f"cluster.nodes[{i}].type"
        stock = _stock(account, group)
        if not zones_of_group & stock.keys():
            offered = f"it is sold in {', '.join(sorted(stock))}" if stock else "no zone of the region sells it"
            message = f"{group.type} is not sold in {', '.join(sorted(zones_of_group))}; {offered}"
            yield Finding(level="error", rule="live-offering", path=path, message=message)
        elif all(stock.get(zone) == "WithoutStock" for zone in zones_of_group):
            yield Finding(level="warning", rule="live-stock", path=path, message=f"{group.type} is currently sold out")
    yield from _unmeasured(account, plan)


def _unmeasured(account: Account, plan: AlicloudPlan) -> Iterator[Finding]:
    """Groups that would stay at their minimum. A custom image may contain the agent; a public one does not."""
    without_agent = [
        i
        for i, group in enumerate(plan.groups)
        if isinstance(group.capacity, Elastic) and not (group.image.recorded or "").startswith("m-")
    ]
    if without_agent and not account.call("cms", "DescribeMonitoringAgentConfig").get("EnableInstallAgentNewECS"):
        reason = "the account installs no CloudMonitor agent on new instances, so nothing reports the load of the GPUs"
        remedy = "`aliyun cms PutMonitoringConfig --EnableInstallAgentNewECS true`, or `count` for `min` and `max`"
        for i in without_agent:
            path, message = f"cluster.nodes[{i}].max", f"{reason}: {remedy}"
            yield Finding(level="error", rule="live-agent", path=path, message=message)


def _stock(account: Account, group: AlicloudGroupPlan) -> dict[str, str]:
    """By zone that sells the type, its stock category."""
    spot = {"SpotStrategy": group.market.strategy} if isinstance(group.market, Spot) else {}
    query = {"DestinationResource": "InstanceType", "InstanceType": group.type, "IoOptimized": "optimized", **spot}
    response = account.call("ecs", "DescribeAvailableResource", InstanceChargeType="PostPaid", **query)
    zones = response.get("AvailableZones", {}).get("AvailableZone", ())
    return {zone["ZoneId"]: zone.get("StatusCategory", "") for zone in zones if zone.get("Status") == "Available"}
