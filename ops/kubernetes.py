"""Tenants of Kubernetes clusters: what the day-by-day commands ask, and a job from its file to its result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config, dynamic
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from infra.plan.kubernetes import KubernetesPlan
from infra.plan.kubernetes.jobs import objects
from infra.plan.kubernetes.tenant import JOB_LABEL
from ops import clouds
from ops.failure import Failure
from ops.runs import Run

Event = dict[str, Any]
MANAGER = "gpufleet"
ASK_SECONDS = 1.0
ENDED = ("Succeeded", "Failed")


class Cloud(clouds.Cloud):
    """A cluster that is somebody's: nothing of it is waited for, and its bill is not ours."""

    plan: KubernetesPlan

    def renew(self, group: str) -> str:
        raise Failure(f"--renew {group}: the nodes are the cluster's own, and its owner's to renew", code=2)


@dataclass(frozen=True)
class Submission:
    """A job in the cluster: submitted, followed to its end, and stopped."""

    plan: KubernetesPlan
    run: Run
    api: client.ApiClient

    @classmethod
    def of(cls, plan: KubernetesPlan, run: Run) -> Submission:
        """Raises Failure for a kubeconfig or context that is not there."""
        access = plan.access
        try:
            made = config.new_client_from_config(str(Path(access.kubeconfig).expanduser()), access.context)
        except (config.ConfigException, OSError) as error:
            raise Failure(f"{access.kubeconfig}: {error}") from None
        return cls(plan, run, made)

    def submit(self, text: str, settings: Sequence[str]) -> None:
        """Applies the job with strict fields. Raises Failure with the server's own words."""
        tenant, group = self.plan.tenant, self.plan.groups[0]
        arguments = [part for setting in settings for part in ("--set", setting)]
        cluster = dynamic.DynamicClient(self.api)
        for body in objects(tenant, group, self.plan.storage, self.run.name, text, arguments):
            try:
                kind = cluster.resources.get(api_version=body["apiVersion"], kind=body["kind"])
                kind.server_side_apply(
                    body=body,
                    name=body["metadata"]["name"],
                    namespace=tenant.namespace,
                    field_manager=MANAGER,
                    query_params=[("fieldValidation", "Strict")],
                )
            except ResourceNotFoundError:
                raise Failure(f"the cluster knows no {body['kind']}: `gpufleet up {self.plan.stack}` first") from None
            except ApiException as error:
                raise Failure(f"{body['kind']} {body['metadata']['name']}: {_said(error)}") from None

    def follow(self, on_event: Callable[[Event], None]) -> Event:
        """Passes on what rank 0 tells, and returns the result. Raises Failure when the job ends without one."""
        folder = self.run.folder
        with (folder / "events.jsonl").open("a") as record, (folder / "metrics.jsonl").open("a") as metrics:
            words: list[str] = []
            while True:
                pod = self._reporter()
                for event in self._events(pod, words):
                    record.write(json.dumps(event) + "\n")
                    record.flush()
                    if event["event"] in ("step", "eval"):
                        metrics.write(json.dumps(event) + "\n")
                    on_event(event)
                    if event["event"] == "result":
                        return event
                if self._phase(pod) == "Failed":
                    raise Failure(*(f"{pod}: {word}" for word in words[-3:] or ["failed without a word"]))
                time.sleep(ASK_SECONDS)

    def stop(self) -> None:
        """Deletes the job; its pods get their grace, in which they save."""
        tenant = self.plan.tenant
        kinds = {
            "job": ("batch/v1", "Job"),
            "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
            "trainjob": ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
        }
        version, name = kinds[tenant.form]
        kind = dynamic.DynamicClient(self.api).resources.get(api_version=version, kind=name)
        kind.delete(name=self.run.name, namespace=tenant.namespace, body={"propagationPolicy": "Background"})

    def _reporter(self) -> str:
        """The pod of rank 0, once it has begun."""
        selector = f"{JOB_LABEL}={self.run.name},batch.kubernetes.io/job-completion-index=0"
        while True:
            found = self._pods.get(namespace=self.plan.tenant.namespace, label_selector=selector).items
            begun = [pod for pod in found if pod.status.phase in ("Running", *ENDED)]
            if begun:
                return max(begun, key=lambda pod: pod.metadata.creationTimestamp).metadata.name
            time.sleep(ASK_SECONDS)

    @property
    def _pods(self) -> Any:
        return dynamic.DynamicClient(self.api).resources.get(api_version="v1", kind="Pod")

    def _events(self, pod: str, words: list[str]) -> Iterator[Event]:
        try:
            log: Any = client.CoreV1Api(self.api).read_namespaced_pod_log(
                pod, self.plan.tenant.namespace, container="node", follow=True, _preload_content=False
            )
            for raw in log:
                line = raw.decode(errors="replace")
                if line.startswith("{"):
                    yield json.loads(line)
                else:
                    words.append(line.rstrip())
        except (ApiException, HTTPError):
            return  # the pod is gone, or its log breaks off: what comes next is asked anew

    def _phase(self, pod: str) -> str:
        try:
            found = self._pods.get(name=pod, namespace=self.plan.tenant.namespace)
        except ApiException as error:
            if error.status != 404:
                raise Failure(_said(error)) from None
            return "gone"
        return found.status.phase


def _said(error: ApiException) -> str:
    try:
        return " ".join(json.loads(error.body or "")["message"].split())
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
