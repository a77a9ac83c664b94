"""The resources of a local cluster: one site, and one resource a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulumi import ComponentResource, Output, ProviderResource, ResourceOptions, dynamic

from infra import handover
from infra.clouds.local.nodes import base, site
from infra.clouds.local.plan import LocalPlan
from infra.clouds.local.provider import NodeProvider, SiteProvider
from infra.plan.model import NodePlan


class Site(dynamic.Resource, module="gpufleet", name="Site"):
    """What the nodes of a stack share on this computer; its delete removes all their leftovers."""

    def __init__(self, name: str, props: dict[str, Any], opts: ResourceOptions | None = None) -> None:
        super().__init__(SiteProvider(), name, props, opts)


class Node(dynamic.Resource, module="gpufleet", name="Node"):
    """One node. host_key: its SSH host key, `type base64`."""

    host_key: Output[str]

    def __init__(self, name: str, props: dict[str, Any], opts: ResourceOptions | None = None) -> None:
        super().__init__(NodeProvider(), name, {**props, "host_key": None}, opts)


class Cluster(ComponentResource):
    """The site and its nodes. host_keys: by node name."""

    host_keys: Output[dict[str, str]]

    def __init__(self, name: str, plan: LocalPlan, root: Path, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:local:Cluster", name, {}, opts)
        child = ResourceOptions(parent=self)
        shared_site = Site(f"{name}-site", _site_properties(plan, root), child)
        self.host_keys = Output.all(
            **{
                node.name: Node(node.name, {"site": shared_site.id, **_properties(plan, node, root)}, child).host_key
                for node in plan.nodes
            }
        )
        self.register_outputs({"host_keys": self.host_keys})


def declare(plan: LocalPlan, root: Path) -> Output[dict[str, Any]]:
    """Declares the cluster and returns its handover as plain JSON."""
    provider = ProviderResource("pulumi-python", "local", {})
    cluster = Cluster(plan.stack, plan, root, ResourceOptions(providers=[provider]))
    return cluster.host_keys.apply(lambda keys: _handover(plan, root, keys).to_json())


def _site_properties(plan: LocalPlan, root: Path) -> dict[str, Any]:
    return {
        "path": str(site.folder(root, plan.stack)),
        "isolation": plan.isolation,
        "network": plan.network.cidr if plan.isolation == "machine" else None,
        "nodes": len(plan.nodes),
    }


def _properties(plan: LocalPlan, node: NodePlan, root: Path) -> dict[str, Any]:
    machine = {
        "cidr": plan.network.cidr,
        "gateway": plan.network.gateway,
        "base": base.name(),
        "environment": str(root / ".venv"),
    }
    return {
        "path": str(site.folder(root, plan.stack)),
        "node": node.name,
        "address": node.address,
        "port": node.port,
        "public_keys": list(plan.access.public_keys),
        "storage": {storage.name: storage.mount for storage in plan.storage},
        "machine": machine if plan.isolation == "machine" else None,
    }


def _handover(plan: LocalPlan, root: Path, host_keys: dict[str, str]) -> handover.Handover:
    place, real = site.folder(root, plan.stack), plan.isolation == "machine"
    return handover.Handover(
        stack=plan.stack,
        cloud=plan.cloud,
        region=plan.region,
        access=handover.Access(
            user=site.login(plan.isolation), key_file=str(place / "key"), known_hosts_file=str(place / "known_hosts")
        ),
        nodes=tuple(
            handover.Node(
                name=node.name,
                group=node.group,
                address=node.address,
                port=node.port,
                host_key=host_keys[node.name],
                prefix="/" if real else str(place / "nodes" / node.name),
            )
            for node in plan.nodes
        ),
        groups=tuple(map(handover.Group.of, plan.groups)),
        storage=tuple(
            handover.Storage(name=storage.name, path=storage.mount if real else str(place / "storage" / storage.name))
            for storage in plan.storage
        ),
        store=handover.Store(host="control", address=plan.network.gateway),
        environment=handover.Environment(python=str(root / ".venv" / "bin" / "python"), shared=True),
    )
