"""Tenants of Kubernetes clusters."""

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
from ops.jobs.base import Job, JobRunner
from ops.nodes.ssh import NodeState

ANSWER_SECONDS = 10.0


class Cloud(base.Cloud):
    """A tenant of a cluster with its own owner, who also pays for it."""

    plan: KubernetesPlan

    def findings(self) -> tuple[Finding, ...]:
        """Whether another tenant installed the charts: during `up`, Helm reports that a name is in use, not by whom."""
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
        message = f"tenant {owner} has installed the charts in this cluster: use those with `install: false`"
        return (
            Finding(level="error", rule="charts-have-one-owner", path="cluster.components.install", message=message),
        )

    def discovered(self, handover: Handover) -> Discovered:
        """The cluster's nodes with the groups' labels; none is in the handover, since there is no SSH login."""
        api = client.CoreV1Api(connected(self.plan))
        return Discovered(handover, tuple(state for group in self.plan.groups for state in _states(api, group)))

    def cluster_runner(self, job: Job, group: str | None) -> JobRunner:
        """group: the first one or None, since the runtime of TrainJobs, which `up` installs there, is of that one
        alone."""
        from ops.clouds.kubernetes.jobs import KubernetesRunner

        first = self.plan.groups[0].name
        if group not in (None, first):
            message = f"--group {group}: jobs run on the first group of `nodes`, {first}; omit --group"
            raise CommandError(message, code=2)
        return KubernetesRunner(self.plan, job, connected(self.plan))

    def renewable(self, group: str) -> None:
        raise CommandError(f"--renew {group}: the nodes belong to the cluster, whose owner renews them", code=2)

    def orphans(self, state: State) -> list[str]:
        """The tenant's namespace, when it is not in the state and not terminating.

        It is listed and never deleted: a tenant of that name may belong to another user with another state.
        """
        space = self.plan.tenant.namespace
        if space in state_repair.known_names(state):
            return []
        api, selector = client.CoreV1Api(connected(self.plan)), f"{TENANT_LABEL}={space}"
        try:
            namespaces: list[Any] = api.list_namespace(label_selector=selector, _request_timeout=ANSWER_SECONDS).items
        except (ApiException, HTTPError) as error:
            raise CommandError(f"{self.plan.access.context}: {server_message(error)}") from None
        remedy = f"`{kubectl(self.plan)} delete namespace {space}` deletes it with everything in it"
        return [f"namespace {space}: {remedy}" for namespace in namespaces if not namespace.metadata.deletion_timestamp]


def connected(plan: KubernetesPlan) -> client.ApiClient:
    """Raises CommandError for a kubeconfig or context that is not there."""
    access = plan.access
    try:
        return config.new_client_from_config(str(Path(access.kubeconfig).expanduser()), access.context)
    except (config.ConfigException, OSError) as error:
        raise CommandError(f"{access.kubeconfig}: {error}") from None


def kubectl(plan: KubernetesPlan) -> str:
    """The beginning of a kubectl command for this cluster."""
    return f"kubectl --kubeconfig {plan.access.kubeconfig} --context {shlex.quote(plan.access.context)}"


def _states(api: client.CoreV1Api, group: PodGroupPlan) -> Iterator[NodeState]:
    """A group's nodes as the cluster reports them, then how many are missing. Not every tenant may list nodes."""
    selector = ",".join(f"{key}={value}" for key, value in group.labels.items())
    try:
        nodes: list[Any] = api.list_node(label_selector=selector, _request_timeout=ANSWER_SECONDS).items
    except ApiException as error:
        yield NodeState(group.name, group.name, "", "unknown", server_message(error))
        return
    except HTTPError as error:
        yield NodeState(group.name, group.name, "", "unreachable", server_message(error))
        return
    for node in nodes:
        address = next((item.address for item in node.status.addresses or () if item.type == "InternalIP"), "")
        ready = next((condition for condition in node.status.conditions or () if condition.type == "Ready"), None)
        if ready is None or ready.status != "True":
            reason = (ready and ready.message) or "it has not reported yet"
        else:
            reason = "it is cordoned" if node.spec.unschedulable else ""
        yield NodeState(node.metadata.name, group.name, address, "not ready" if reason else "ready", reason)
    if len(nodes) < group.count:
        shortage = f"{len(nodes)} of {group.count} nodes have {selector}"
        yield NodeState(group.name, group.name, "", "missing", shortage)


def server_message(error: ApiException | HTTPError) -> str:
    """The API server's own message in one line; of a failed connection, what failed."""
    if not isinstance(error, ApiException):
        return " ".join(str(error).split())
    try:
        return " ".join(json.loads(error.body or "")["message"].split())
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
