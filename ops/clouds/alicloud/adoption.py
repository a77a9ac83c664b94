"""Which resources of a rendered plan exist in the account although the engine's state lacks them, and by which ids.

Sources: VPC API, DescribeSnatTableEntries; ESS API, DescribeScalingConfigurations and DescribeScalingRules; ECS API,
DescribeAutoProvisioningGroups, DescribeDeploymentSets and DescribeHpcClusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ops.clouds.alicloud.account import Account
from ops.clouds.alicloud.resource_ids import FOLLOWING, NAMED, TAGGED
from ops.clouds.alicloud.tagged_resources import Thing
from ops.engine import state_repair
from ops.engine.state_repair import REFERENCE, Found, Row


@dataclass(frozen=True)
class Adoption:
    """What is known when a row's turn comes. ids: by URN, of the state and of what was found so far."""

    account: Account
    things: Sequence[Thing]
    ids: dict[str, str]

    def found(self, rows: Sequence[Row]) -> dict[str, Found]:
        """What exists, by URN, and what exists if ever its turn came. rows: in the order of their dependencies.

        In an account that holds nothing of the stack, nothing is looked for.
        """
        answer: dict[str, Found] = {}
        if not (self.things or self.ids):
            return answer
        for row in rows:
            if row["custom"] and row["urn"] not in self.ids and (one := self._find(row)):
                answer[row["urn"]] = one
                self.ids[row["urn"]] = one.id
        return answer

    def _find(self, row: Row) -> Found | None:
        if kind := TAGGED.get(row["type"]):
            taken = set(self.ids.values())
            same = (each for each in self.things if (each.kind, each.name) == (kind, row["name"]))
            one = next((each for each in same if each.id not in taken), None)
            if one is None:
                return None
            ends = {"endTime": one.ends} if one.ends else {}  # `down` does not refresh what it keeps
            return state_repair.refreshed(row, one.id, NAMED.get(row["type"], ""), one.id, **ends)
        arguments = {key: self._meant(row, value) for key, value in row["inputs"].items() if isinstance(value, str)}
        known = {key: value for key, value in arguments.items() if value is not None}
        id_ = self._id(row["type"], known)
        return state_repair.refreshed(row, id_, **{key: known[key] for key in known if key != "name"}) if id_ else None

    def _id(self, type_: str, arguments: dict[str, str]) -> str | None:
        try:
            if template := FOLLOWING.get(type_):
                return template.format_map(arguments)
            return ASKED[type_](self.account, arguments) if type_ in ASKED else None
        except KeyError:  # what it belongs to is not there, so neither is it
            return None

    def _meant(self, row: Row, text: str) -> str | None:
        """A text with the ids of what it refers to; None while one of them is not there."""
        for reference in REFERENCE.finditer(text):
            ending = f"::{reference['name']}"
            id_ = next((self.ids[urn] for urn in row["dependencies"] if urn.endswith(ending) and urn in self.ids), None)
            if id_ is None:
                return None
            text = text.replace(reference[0], id_)
        return text


def _way_out(account: Account, own: dict[str, str]) -> str | None:
    """Of the NAT gateway, whose id stands where its table's is meant."""
    asked = {"NatGatewayId": own["snatTableId"], "SourceVSwitchId": own["sourceVswitchId"]}
    told = account.call("vpc", "DescribeSnatTableEntries", **asked)["SnatTableEntries"].get("SnatTableEntry", ())
    return next((f"{each['SnatTableId']}:{each['SnatEntryId']}" for each in told), None)


def _configuration(account: Account, own: dict[str, str]) -> str | None:
    told = account.call("ess", "DescribeScalingConfigurations", ScalingGroupId=own["scalingGroupId"])
    return next((each["ScalingConfigurationId"] for each in told["ScalingConfigurations"]), None)


def _rule(account: Account, own: dict[str, str]) -> str | None:
    told = account.call("ess", "DescribeScalingRules", ScalingGroupId=own["scalingGroupId"])
    return next((f"{own['scalingGroupId']}:{each['ScalingRuleId']}" for each in told["ScalingRules"]), None)


def _mix(account: Account, own: dict[str, str]) -> str | None:
    name = own["autoProvisioningGroupName"]
    told = account.call("ecs", "DescribeAutoProvisioningGroups", AutoProvisioningGroupName=name)
    groups = told["AutoProvisioningGroups"].get("AutoProvisioningGroup", ())
    return next((each["AutoProvisioningGroupId"] for each in groups if each["Status"] == "active"), None)


def _deployment_set(account: Account, own: dict[str, str]) -> str | None:
    told = account.call("ecs", "DescribeDeploymentSets", DeploymentSetName=own["deploymentSetName"])
    return next((each["DeploymentSetId"] for each in told["DeploymentSets"].get("DeploymentSet", ())), None)


def _hpc(account: Account, own: dict[str, str]) -> str | None:
    told = account.call("ecs", "DescribeHpcClusters")["HpcClusters"].get("HpcCluster", ())
    return next((each["HpcClusterId"] for each in told if each["Name"] == own["name"]), None)


ASKED: dict[str, Callable[[Account, dict[str, str]], str | None]] = {
    "alicloud:ecs/autoProvisioningGroup:AutoProvisioningGroup": _mix,
    "alicloud:ecs/ecsDeploymentSet:EcsDeploymentSet": _deployment_set,
    "alicloud:ecs/hpcCluster:HpcCluster": _hpc,
    "alicloud:ess/scalingConfiguration:ScalingConfiguration": _configuration,
    "alicloud:ess/scalingRule:ScalingRule": _rule,
    "alicloud:vpc/snatEntry:SnatEntry": _way_out,
}
