"""Tenants of Kubernetes clusters: what the day-by-day commands ask of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from infra.clouds.kubernetes.plan.model import KubernetesPlan, PodGroupPlan
from infra.clouds.kubernetes.plan.tenant import CHARTS_LABEL, TENANT_LABEL
from infra.handover import Handover
from infra.plan.model import Finding
from ops.clouds import base
from ops.clouds.base import Discovered
from ops.engine import state_repair
from ops.engine.state_repair import State
from ops.errors import CommandError
from ops.nodes.ssh import NodeState

ANSWER_SECONDS = 10.0


class Cloud(base.Cloud):
    """A cluster that is somebody's: nothing of it is waited for, and its bill is not ours."""

    plan: KubernetesPlan

    def checked(self) -> tuple[Finding, ...]:
        """Whether the charts are another tenant's: amid an `up` Helm says that a name is in use, not by whom."""
        tenant = self.plan.tenant
        if not tenant.charts:
            return ()
        api = client.CoreV1Api(connected(self.plan))
        try:
            spaces: list[Any] = api.list_namespace(label_selector=CHARTS_LABEL, _request_timeout=ANSWER_SECONDS).items
        except (ApiException, HTTPError) as error:
            raise CommandError(f"{self.plan.access.context}: {server_message(error)}") from None
        owner = next((name for space in spaces if (name := space.metadata.name) != tenant.namespace), None)
        if owner is None:
            return ()
        said = f"tenant {owner} has put the charts into this cluster: `install: false` uses those"
        return (Finding(level="error", rule="charts-have-one-owner", path="cluster.components.install", message=said),)

    def discovered(self, told: Handover) -> Discovered:
        """The cluster's nodes that have the groups' labels; nobody logs in there, so none is told to be reached."""
        api = client.CoreV1Api(connected(self.plan))
        return Discovered(told, tuple(state for group in self.plan.groups for state in _states(api, group)))

    def renewable(self, group: str) -> None:
        raise CommandError(f"--renew {group}: the nodes are the cluster's own, and its owner's to renew", code=2)

    def strays(self, state: State) -> list[str]:
        """The tenant's namespace, when the state does not know it; one that is on its way out is none.

        It is told and left alone: a tenant of that name may be somebody else's, whose state lies elsewhere.
        """
        space = self.plan.tenant.namespace
        if space in state_repair.everything(state):
            return []
        api, mine = client.CoreV1Api(connected(self.plan)), f"{TENANT_LABEL}={space}"
        try:
            found: list[Any] = api.list_namespace(label_selector=mine, _request_timeout=ANSWER_SECONDS).items
        except (ApiException, HTTPError) as error:
            raise CommandError(f"{self.plan.access.context}: {server_message(error)}") from None
        remedy = f"`{kubectl(self.plan)} delete namespace {space}` takes it away with all that is in it"
        return [f"namespace {space}: {remedy}" for each in found if not each.metadata.deletion_timestamp]


def connected(plan: KubernetesPlan) -> client.ApiClient:
    """Raises CommandError for a kubeconfig or context that is not there."""
    access = plan.access
    try:
        return config.new_client_from_config(str(Path(access.kubeconfig).expanduser()), access.context)
    except (config.ConfigException, OSError) as error:
        raise CommandError(f"{access.kubeconfig}: {error}") from None


def kubectl(plan: KubernetesPlan) -> str:
    """How a command begins that a person types for this cluster."""
    return f"kubectl --kubeconfig {plan.access.kubeconfig} --context {shlex.quote(plan.access.context)}"


def _states(api: client.CoreV1Api, group: PodGroupPlan) -> Iterator[NodeState]:
    """A group's nodes as the cluster sees them, then what is amiss with the group; a tenant may not ask everywhere."""
    known = ",".join(f"{key}={value}" for key, value in group.labels.items())
    try:
        found: list[Any] = api.list_node(label_selector=known, _request_timeout=ANSWER_SECONDS).items
    except ApiException as error:
        yield NodeState(group.name, group.name, "", "unknown", server_message(error))
        return
    except HTTPError as error:
        yield NodeState(group.name, group.name, "", "unreachable", server_message(error))
        return
    for node in found:
        address = next((each.address for each in node.status.addresses or () if each.type == "InternalIP"), "")
        ready = next((each for each in node.status.conditions or () if each.type == "Ready"), None)
        if ready is None or ready.status != "True":
            reason = (ready and ready.message) or "it has told nothing yet"
        else:
            reason = "it takes no new pods" if node.spec.unschedulable else ""
        yield NodeState(node.metadata.name, group.name, address, "not ready" if reason else "ready", reason)
    if len(found) < group.count:
        few = f"{len(found)} of {group.count} nodes have {known}"
        yield NodeState(group.name, group.name, "", "missing", few)


def server_message(error: ApiException | HTTPError) -> str:
    """The API server's own message in one line; of a failed connection, what failed."""
    if not isinstance(error, ApiException):
        return " ".join(str(error).split())
    try:
        return " ".join(json.loads(error.body or "")["message"].split())
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
