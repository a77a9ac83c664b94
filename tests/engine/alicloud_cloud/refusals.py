"""What Alibaba Cloud refuses to make.

Sources: VPC API, CreateVSwitch; ECS API, RunInstances (elastic RDMA interfaces, spot prices); ESS API,
CreateScalingConfiguration ("NetworkInterfaces"); CS API, CreateCluster ("kubernetes_version", whose examples are whole
releases, and "addons", of which the network plug-in is one that must be there).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import Any

from cloud_provider.kinds import RefusedError, leaves
from cloud_provider.store import Store

from alicloud_cloud import values
from alicloud_cloud.kinds import CLUSTER, CONFIGURATION, INSTANCE, MACHINES, NETWORK, VPC, VSWITCH

OURS = {kind.id.partition("-{hex}")[0] for kind in (NETWORK | MACHINES).values() if kind.id.endswith("-{hex}")}
ID = re.compile(rf"({'|'.join(sorted(prefix for prefix in OURS if ':' not in prefix))})-[0-9a-f]{{16}}")


def check(store: Store, type_: str, inputs: Mapping[str, Any]) -> None:
    """Raises RefusedError when a resource cannot be made of these inputs."""
    for line in values.problems(type_, inputs):
        raise RefusedError("InvalidParameter", line)
    for id_ in {text for text in leaves(inputs) if ID.fullmatch(text)}:
        if not store.rows("id = ?", id_):
            raise RefusedError(f"Invalid{id_.partition('-')[0].title()}Id.NotFound", f"{id_} does not exist")
    if special := SPECIAL.get(type_):
        special(store, inputs)


def _vswitch(store: Store, inputs: Mapping[str, Any]) -> None:
    net = ip_network(inputs["cidrBlock"])
    (vpc,) = store.rows("type = ? and id = ?", VPC, inputs["vpcId"])
    if not net.subnet_of(ip_network(vpc.inputs["cidrBlock"])):  # pyright: ignore[reportArgumentType]
        raise RefusedError("InvalidCidrBlock", f"{net} is outside {vpc.inputs['cidrBlock']}")
    for other in store.of(VSWITCH):
        if other.inputs["vpcId"] == vpc.id and net.overlaps(ip_network(other.inputs["cidrBlock"])):
            raise RefusedError("InvalidCidrBlock.Overlapped", f"{net} overlaps {other.id}")


def _instance(store: Store, inputs: Mapping[str, Any]) -> None:
    """A first ERI without a number takes all queue pairs; only one price strategy has a limit."""
    second = inputs.get("networkInterfaces") or {}
    if second and None in {inputs.get("queuePairNumber"), second.get("queuePairNumber")}:
        raise RefusedError("InvalidParameter.QueuePairNumber", "no queue pairs are left for the second interface")
    if second and second.get("networkCardIndex") == inputs.get("networkCardIndex"):
        raise RefusedError("InvalidParameter.NetworkCardIndex", "two elastic RDMA interfaces stand on one card")
    if inputs.get("spotPriceLimit") and inputs.get("spotStrategy") != "SpotWithPriceLimit":
        raise RefusedError("InvalidSpotPriceLimit", "a limit needs the strategy SpotWithPriceLimit")


def _configuration(store: Store, inputs: Mapping[str, Any]) -> None:
    if inputs.get("networkInterfaces") and inputs.get("securityGroupIds"):
        raise RefusedError("InvalidParameter.Conflict", "beside network interfaces no security group may stand")


def _cluster(store: Store, inputs: Mapping[str, Any]) -> None:
    if not re.fullmatch(r"1\.\d+\.\d+-aliyun\.\d+", inputs["version"]):
        raise RefusedError("ErrInvalidKubernetesVersion", f"{inputs['version']} is no release of ACK")
    if "terway-eniip" not in {addon["name"] for addon in inputs.get("addons", ())}:
        raise RefusedError("ErrNetworkPlugin", "pod vSwitches need the network plug-in terway-eniip")


SPECIAL: Mapping[str, Callable[[Store, Mapping[str, Any]], None]] = {
    VSWITCH: _vswitch,
    INSTANCE: _instance,
    CONFIGURATION: _configuration,
    CLUSTER: _cluster,
}
