"""A job in a Kubernetes cluster, from its file to its result."""

from __future__ import annotations

import itertools
import json
import secrets
from collections import Counter, deque
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kubernetes import client, dynamic
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError
from urllib3.exceptions import HTTPError

from infra.clouds.kubernetes.plan.jobs import CHECK_CONTAINER, objects
from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.clouds.kubernetes.plan.tenant import JOB_LABEL
from infra.printable import one_line
from ops import untrusted
from ops.clock import REAL, Clock
from ops.clouds.kubernetes.cloud import kubectl, server_message
from ops.errors import CommandError
from ops.jobs.base import PREEMPTED, Event, Job, JobRunner, OnEvent, out_setting
from ops.jobs.runs import Run
from ops.jobs.workers import OUTPUT_LINES, as_text
from ops.untrusted import Result, lines
from training import atomic

MANAGER = "gpufleet"
POLL_SECONDS = 1.0
LOG_TRIES = 10  # an ended pod's log may be out of reach for a moment, or for good when its node is gone
ENDED = ("Succeeded", "Failed")
OVER = ("Complete", "Completed", "Failed")  # conditions of a Job, a TrainJob and a JobSet
KINDS = {
    "job": ("batch/v1", "Job"),
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "trainjob": ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
}


@dataclass
class KubernetesRunner(JobRunner):
    """A job in the cluster, whose own controllers start the ranks and start them again."""

    plan: KubernetesPlan
    job: Job
    api: client.ApiClient
    clock: Clock = REAL
    _result: Event | None = None

    @property
    def run(self) -> Run:
        return self.job.run

    def prepare(self, on_event: OnEvent) -> None:
        """Deletes the job of the run's earlier start, and waits for the last of its pods, which may still save.

        Raises CommandError for a job that is not over, and for one that this computer did not start.
        """
        name, space = self.run.name, self.plan.tenant.namespace
        try:
            if (job := self._existing_job()) and not job.metadata.deletionTimestamp:
                if not (self.job.resumed and _end(job)):
                    why = "was not started by this computer" if _end(job) else "is not over yet"
                    raise CommandError(
                        f"{self.plan.tenant.form} {name} in {space} {why}: {self._delete_command} deletes it"
                    )
                # In the foreground it stays until its dependents are gone: a new one would be given those, too.
                self._jobs.delete(name=name, namespace=space, body={"propagationPolicy": "Foreground"})
            reported = False
            while self._existing_job() or self._pods():
                if not reported:
                    on_event({"event": "waiting", "reason": f"{name}: the pods of its earlier start are terminating"})
                    reported = True
                self.clock.sleep(POLL_SECONDS)
        except (ApiException, HTTPError) as error:
            raise CommandError(f"{name}: {server_message(error)}") from None

    def start(self, on_event: OnEvent) -> None:
        """Applies the job with strict fields. Raises CommandError with the server's own message."""
        try:
            self._apply()
        except KeyboardInterrupt:
            on_event({"event": "stopping"})
            self.stop()
            raise self._stopped() from None

    def _apply(self) -> None:
        tenant, group, storage = self.plan.tenant, self.plan.groups[0], self.plan.storage
        settings = [*self.job.overrides, out_setting(f"{storage[0].mount}/runs/{self.run.place}")]
        arguments = [part for setting in settings for part in ("--set", setting)]
        key = secrets.token_hex(32)
        for body in objects(tenant, group, storage, self.run.name, self.job.text, arguments, key):
            try:
                self._kind(body["apiVersion"], body["kind"]).server_side_apply(
                    body=body,
                    name=body["metadata"]["name"],
                    namespace=tenant.namespace,
                    field_manager=MANAGER,
                    query_params=[("fieldValidation", "Strict")],
                )
            except (ApiException, HTTPError) as error:
                raise CommandError(f"{body['kind']} {body['metadata']['name']}: {server_message(error)}") from None

    def follow(self, on_event: OnEvent) -> None:
        """Passes on the events of rank 0, and why it does not begin, until it has sent the result.

        A pod that fails, or that was evicted and saved, is followed by the next one, as long as the cluster starts one.
        Raises CommandError when the job ends without a result.
        """
        folder = self.run.folder
        with (folder / "events.jsonl").open("a") as record, (folder / "metrics.jsonl").open("a") as metrics:
            output: deque[str] = deque(maxlen=OUTPUT_LINES)
            lines_read: Counter[str] = Counter()
            failed_reads: Counter[str] = Counter()
            ended: set[str] = set()
            while True:
                pod = self._reporter(ended, output, on_event)
                over = self._over(pod)
                if over and (reason := self._failed_check(pod)):
                    on_event({"event": "waiting", "reason": reason})
                    output.append(reason)
                    ended.add(pod)
                    continue
                try:
                    for event in self._events(pod, lines_read, output):
                        record.write(json.dumps(event) + "\n")
                        record.flush()
                        if event["event"] in ("step", "eval"):
                            metrics.write(json.dumps(event) + "\n")
                        on_event(event)
                        if event["event"] == "result" and event["finished"]:
                            self._result = event
                            return
                except (ApiException, HTTPError) as error:
                    failed_reads[pod] += 1
                    output.append(f"no log of {pod}: {server_message(error)}")
                    over = over and failed_reads[pod] == LOG_TRIES
                if over:
                    ended.add(pod)
                self.clock.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Deletes the job, if it still exists; its pods get their grace period, in which they save.

        Raises CommandError for a job that cannot be deleted, and keeps its GPUs.
        """
        name, space = self.run.name, self.plan.tenant.namespace
        try:
            self._jobs.delete(name=name, namespace=space, body={"propagationPolicy": "Background"})
        except NotFoundError:
            return
        except (ApiException, HTTPError) as error:
            raise CommandError(
                f"{name} is still running: {server_message(error)}", f"{self._delete_command} stops it"
            ) from None

    def result(self) -> Event:
        """As rank 0 sent it. Raises CommandError for a job that was stopped."""
        if self._result is None:
            raise self._stopped()
        result = untrusted.parsed(Result, json.dumps(self._result)).model_dump()
        atomic.write(self.run.result, json.dumps(result, indent=1).encode())
        return result

    def _stopped(self) -> CommandError:
        message = f"stopped, with a checkpoint where one was due: {self.job.command} resumes"
        return CommandError(message, code=PREEMPTED)

    def _reporter(self, ended: Container[str], output: Collection[str], on_event: OnEvent) -> str:
        """The newest pod of rank 0 that has begun; while there is none, reports why. Raises CommandError when none
        will."""
        selector, reported = f"{JOB_LABEL}={self.run.name},batch.kubernetes.io/job-completion-index=0", ""
        while True:
            try:
                new = [pod for pod in self._pods(selector) if pod.metadata.name not in ended]
                if begun := [pod for pod in new if pod.status.phase in ("Running", *ENDED)]:
                    return max(begun, key=lambda pod: pod.metadata.creation_timestamp).metadata.name
                self._require_unfinished(output)
                reason = _blocked_by(new) or self._warning() or "no pod of rank 0 yet"
            except ApiException as error:
                raise CommandError(f"{self.run.name}: {server_message(error)}") from None
            except HTTPError as error:
                reason = f"the API server does not answer: {server_message(error)}"
            if reason != reported:
                on_event({"event": "waiting", "reason": one_line(reason)})
                reported = reason
            self.clock.sleep(POLL_SECONDS)

    def _pods(self, selector: str = "") -> list[Any]:
        """The job's pods, all of them without a selector."""
        space, of_job = self.plan.tenant.namespace, f"{JOB_LABEL}={self.run.name}"
        return self._core.list_namespaced_pod(space, label_selector=selector or of_job).items

    def _require_unfinished(self, output: Collection[str]) -> None:
        """Raises CommandError, with the last lines of rank 0, when the job is over or gone."""
        job = self._jobs.get(name=self.run.name, namespace=self.plan.tenant.namespace)
        if end := _end(job):
            reason = end.message or end.reason or end.type
            raise CommandError(f"{self.run.name} ended without a result: {one_line(reason)}", *list(output)[-3:])

    def _warning(self) -> str:
        """The cluster's newest warning about the job, its set or its pods; empty where none is visible."""
        try:
            events: list[Any] = self._core.list_namespaced_event(
                self.plan.tenant.namespace, field_selector="type=Warning"
            ).items
        except ApiException:
            return ""  # a tenant may lack the right to list them
        name = self.run.name
        about = [event for event in events if f"{event.involved_object.name}-".startswith(f"{name}-")]
        about.sort(key=lambda event: event.last_timestamp or event.event_time or event.metadata.creation_timestamp)
        return f"{about[-1].involved_object.name}: {' '.join(about[-1].message.split())}" if about else ""

    @property
    def _delete_command(self) -> str:
        """What a person types to delete the job."""
        tenant = self.plan.tenant
        return f"`{kubectl(self.plan)} -n {tenant.namespace} delete {tenant.form} {self.run.name}`"

    @property
    def _core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api)

    @property
    def _jobs(self) -> Any:
        return self._kind(*KINDS[self.plan.tenant.form])

    def _kind(self, version: str, kind: str) -> Any:
        try:
            return dynamic.DynamicClient(self.api).resources.get(api_version=version, kind=kind)
        except ResourceNotFoundError:
            raise CommandError(f"the cluster has no {kind}: `gpufleet up {self.plan.stack}` first") from None

    def _existing_job(self) -> Any | None:
        """The run's job; None where there is none."""
        try:
            return self._jobs.get(name=self.run.name, namespace=self.plan.tenant.namespace)
        except NotFoundError:
            return None

    def _events(self, pod: str, lines_read: Counter[str], output: deque[str]) -> Iterator[Event]:
        """The events in a pod's log beyond the lines that were read already; other lines go to `output`."""
        log: Any = self._core.read_namespaced_pod_log(
            pod, self.plan.tenant.namespace, container="node", follow=True, _preload_content=False
        )
        for line in itertools.islice(lines(log.stream()), lines_read[pod], None):
            lines_read[pod] += 1
            if event := untrusted.event(line):
                yield event
            else:
                output.append(as_text(line))

    def _failed_check(self, pod: str) -> str:
        """What the network check of an ended pod reported, whose job then never began; empty where it passed."""
        try:
            status: Any = self._core.read_namespaced_pod(pod, self.plan.tenant.namespace).status
        except (ApiException, HTTPError):
            return ""  # the pod is gone, and its status with it
        for container in status.init_container_statuses or ():
            if container.name == CHECK_CONTAINER and (end := container.state.terminated) and end.exit_code:
                return f"{pod}: {' '.join((end.message or end.reason or f'exit code {end.exit_code}').split())}"
        return ""

    def _over(self, name: str) -> bool:
        """Whether a pod has ended, or is gone."""
        try:
            pod: Any = self._core.read_namespaced_pod(name, self.plan.tenant.namespace)
        except ApiException as error:
            if error.status != 404:
                raise CommandError(server_message(error)) from None
            return True
        except HTTPError:
            return False
        return pod.status.phase in ENDED


def _end(job: Any) -> Any | None:
    """The condition by which a job is over."""
    conditions = (job.status and job.status.conditions) or ()
    return next((end for end in conditions if end.type in OVER and end.status == "True"), None)


def _blocked_by(pods: Sequence[Any]) -> str:
    """Why a pod has not begun: no node for it, or no image."""
    for pod in pods:
        for condition in pod.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{pod.metadata.name}: {condition.message}"
        for container in pod.status.container_statuses or ():
            if waiting := container.state.waiting:
                return f"{pod.metadata.name}: {' '.join(filter(None, [waiting.reason, waiting.message]))}"
    return ""
