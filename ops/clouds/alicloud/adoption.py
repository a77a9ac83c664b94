"""How rows of a plan are matched with what exists at Alibaba Cloud: by tags, by their own arguments, or by a query.

Sources: VPC API, DescribeSnatTableEntries; ESS API, DescribeScalingConfigurations and DescribeScalingRules; ECS API,
DescribeAutoProvisioningGroups, DescribeDeploymentSets and DescribeHpcClusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ops.clouds.adoption import Adoption
from ops.clouds.alicloud.account import Account
from ops.clouds.alicloud.resource_ids import FOLLOWING, NAMED, TAGGED
from ops.clouds.alicloud.tagged_resources import TaggedResource
from ops.engine import state_repair
from ops.engine.state_repair import REFERENCE, ExistingResource, Row


@dataclass(frozen=True)
class AlicloudAdoption(Adoption):
    """Of resources in an account at Alibaba Cloud."""

    account: Account
    resources: Sequence[TaggedResource]
    tagged: ClassVar[Mapping[str, str]] = TAGGED

    def imported(self, row: Row, resource: TaggedResource) -> ExistingResource:
        ends = {"endTime": resource.ends} if resource.ends else {}  # `down` does not refresh what it keeps
        return state_repair.refreshed(row, resource.id, NAMED.get(row["type"], ""), resource.id, **ends)

    def untagged(self, row: Row) -> ExistingResource | None:
        arguments = {key: self._resolved(row, value) for key, value in row["inputs"].items() if isinstance(value, str)}
        known = {key: value for key, value in arguments.items() if value is not None}
        id_ = self._id(row["type"], known)
        return state_repair.refreshed(row, id_, **{key: known[key] for key in known if key != "name"}) if id_ else None

    def _id(self, type_: str, arguments: dict[str, str]) -> str | None:
        try:
            if template := FOLLOWING.get(type_):
                return template.format_map(arguments)
            return QUERIES[type_](self.account, arguments) if type_ in QUERIES else None
        except KeyError:  # what it belongs to does not exist, so neither does it
            return None

    def _resolved(self, row: Row, text: str) -> str | None:
        """A text with its references replaced by ids; None while one of them does not exist."""
        for reference in REFERENCE.finditer(text):
            ending = f"::{reference['name']}"
            id_ = next((self.ids[urn] for urn in row["dependencies"] if urn.endswith(ending) and urn in self.ids), None)
            if id_ is None:
                return None
            text = text.replace(reference[0], id_)
        return text


def _snat_entry(account: Account, own: dict[str, str]) -> str | None:
    """Of the NAT gateway, whose id is in the place of its table's."""
    query = {"NatGatewayId": own["snatTableId"], "SourceVSwitchId": own["sourceVswitchId"]}
    entries = account.call("vpc", "DescribeSnatTableEntries", **query)["SnatTableEntries"].get("SnatTableEntry", ())
    return next((f"{entry['SnatTableId']}:{entry['SnatEntryId']}" for entry in entries), None)


def _scaling_configuration(account: Account, own: dict[str, str]) -> str | None:
    response = account.call("ess", "DescribeScalingConfigurations", ScalingGroupId=own["scalingGroupId"])
    return next((item["ScalingConfigurationId"] for item in response["ScalingConfigurations"]), None)


def _scaling_rule(account: Account, own: dict[str, str]) -> str | None:
    response = account.call("ess", "DescribeScalingRules", ScalingGroupId=own["scalingGroupId"])
    return next((f"{own['scalingGroupId']}:{rule['ScalingRuleId']}" for rule in response["ScalingRules"]), None)


def _auto_provisioning_group(account: Account, own: dict[str, str]) -> str | None:
    name = own["autoProvisioningGroupName"]
    response = account.call("ecs", "DescribeAutoProvisioningGroups", AutoProvisioningGroupName=name)
    groups = response["AutoProvisioningGroups"].get("AutoProvisioningGroup", ())
    return next((group["AutoProvisioningGroupId"] for group in groups if group["Status"] == "active"), None)


def _deployment_set(account: Account, own: dict[str, str]) -> str | None:
    response = account.call("ecs", "DescribeDeploymentSets", DeploymentSetName=own["deploymentSetName"])
    return next((item["DeploymentSetId"] for item in response["DeploymentSets"].get("DeploymentSet", ())), None)


def _hpc_cluster(account: Account, own: dict[str, str]) -> str | None:
    response = account.call("ecs", "DescribeHpcClusters")["HpcClusters"].get("HpcCluster", ())
    return next((item["HpcClusterId"] for item in response if item["Name"] == own["name"]), None)


QUERIES: dict[str, Callable[[Account, dict[str, str]], str | None]] = {
    "alicloud:ecs/autoProvisioningGroup:AutoProvisioningGroup": _auto_provisioning_group,
    "alicloud:ecs/ecsDeploymentSet:EcsDeploymentSet": _deployment_set,
    "alicloud:ecs/hpcCluster:HpcCluster": _hpc_cluster,
    "alicloud:ess/scalingConfiguration:ScalingConfiguration": _scaling_configuration,
    "alicloud:ess/scalingRule:ScalingRule": _scaling_rule,
    "alicloud:vpc/snatEntry:SnatEntry": _snat_entry,
}
