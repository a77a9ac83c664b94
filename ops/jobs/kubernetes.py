"""A job in a Kubernetes cluster, from its file to its result."""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Iterator, Sequence
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
from ops.clouds.kubernetes.cloud import kubectl, words_of
from ops.errors import CommandError
from ops.jobs.runs import Run
from ops.jobs.workers import LAST_WORDS, Event, as_words
from ops.untrusted import lines

MANAGER = "gpufleet"
ASK_SECONDS = 1.0
LOG_TRIES = 10  # an ended pod's log may be out of reach for a moment, or for good when its node is gone
ENDED = ("Succeeded", "Failed")
OVER = ("Complete", "Completed", "Failed")  # conditions of a Job, a TrainJob and a JobSet
KINDS = {
    "job": ("batch/v1", "Job"),
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "trainjob": ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
}


@dataclass(frozen=True)
class Submission:
    """A job in the cluster: submitted, followed to its end, and stopped."""

    plan: KubernetesPlan
    run: Run
    api: client.ApiClient

    def clear(self, on_event: Callable[[Event], None], *, resumed: bool) -> None:
        """Takes away the job of the run's earlier start, and waits for the last of its pods, which may still save.

        Raises CommandError for a job that is not over, and for one of which the run knows nothing.
        """
        name, space = self.run.name, self.plan.tenant.namespace
        try:
            if (job := self._found()) and not job.metadata.deletionTimestamp:
                if not (resumed and _end(job)):
                    why = "is none of this computer's runs" if _end(job) else "is not over yet"
                    raise CommandError(
                        f"{self.plan.tenant.form} {name} in {space} {why}: {self._by_hand} takes it away"
                    )
                # In the foreground it stays until all that it has made is gone: a new one would be given that, too.
                self._jobs.delete(name=name, namespace=space, body={"propagationPolicy": "Foreground"})
            told = False
            while self._found() or self._core.list_namespaced_pod(space, label_selector=f"{JOB_LABEL}={name}").items:
                if not told:
                    on_event({"event": "waiting", "reason": f"{name}: the pods of its earlier start are going"})
                    told = True
                time.sleep(ASK_SECONDS)
        except (ApiException, HTTPError) as error:
            raise CommandError(f"{name}: {words_of(error)}") from None

    def submit(self, text: str, settings: Sequence[str]) -> None:
        """Applies the job with strict fields. Raises CommandError with the server's own words."""
        tenant, group = self.plan.tenant, self.plan.groups[0]
        arguments = [part for setting in settings for part in ("--set", setting)]
        key = secrets.token_hex(32)
        for body in objects(tenant, group, self.plan.storage, self.run.name, text, arguments, key):
            try:
                self._kind(body["apiVersion"], body["kind"]).server_side_apply(
                    body=body,
                    name=body["metadata"]["name"],
                    namespace=tenant.namespace,
                    field_manager=MANAGER,
                    query_params=[("fieldValidation", "Strict")],
                )
            except (ApiException, HTTPError) as error:
                raise CommandError(f"{body['kind']} {body['metadata']['name']}: {words_of(error)}") from None

    def follow(self, on_event: Callable[[Event], None]) -> Event:
        """Passes on what rank 0 tells, and why it does not begin, and returns the result.

        A pod that fails, or that was asked to leave and saved, is followed by the next one, as long as the cluster
        starts one. Raises CommandError when the job ends without a result.
        """
        folder = self.run.folder
        with (folder / "events.jsonl").open("a") as record, (folder / "metrics.jsonl").open("a") as metrics:
            words: deque[str] = deque(maxlen=LAST_WORDS)
            heard: Counter[str] = Counter()
            broken: Counter[str] = Counter()
            ended: set[str] = set()
            while True:
                pod = self._reporter(ended, words, on_event)
                over = self._over(pod)
                if over and (reason := self._unfit(pod)):
                    on_event({"event": "waiting", "reason": reason})
                    words.append(reason)
                    ended.add(pod)
                    continue
                try:
                    for event in self._events(pod, heard, words):
                        record.write(json.dumps(event) + "\n")
                        record.flush()
                        if event["event"] in ("step", "eval"):
                            metrics.write(json.dumps(event) + "\n")
                        on_event(event)
                        if event["event"] == "result" and event["finished"]:
                            return event
                except (ApiException, HTTPError) as error:
                    broken[pod] += 1
                    words.append(f"no log of {pod}: {words_of(error)}")
                    over = over and broken[pod] == LOG_TRIES
                if over:
                    ended.add(pod)
                time.sleep(ASK_SECONDS)

    def stop(self) -> None:
        """Deletes the job, if it is still there; its pods get their grace, in which they save.

        Raises CommandError for a job that stays, and keeps its GPUs.
        """
        name, space = self.run.name, self.plan.tenant.namespace
        try:
            self._jobs.delete(name=name, namespace=space, body={"propagationPolicy": "Background"})
        except NotFoundError:
            return
        except (ApiException, HTTPError) as error:
            raise CommandError(f"{name} goes on: {words_of(error)}", f"{self._by_hand} stops it") from None

    def _reporter(self, ended: Container[str], words: Collection[str], on_event: Callable[[Event], None]) -> str:
        """The newest pod of rank 0 that has begun; while there is none, tells why. Raises CommandError when none
        comes."""
        selector, told = f"{JOB_LABEL}={self.run.name},batch.kubernetes.io/job-completion-index=0", ""
        while True:
            try:
                pods: list[Any] = self._core.list_namespaced_pod(
                    self.plan.tenant.namespace, label_selector=selector
                ).items
                new = [pod for pod in pods if pod.metadata.name not in ended]
                if begun := [pod for pod in new if pod.status.phase in ("Running", *ENDED)]:
                    return max(begun, key=lambda pod: pod.metadata.creation_timestamp).metadata.name
                self._going_on(words)
                reason = _held_up(new) or self._warning() or "no pod of rank 0 yet"
            except ApiException as error:
                raise CommandError(f"{self.run.name}: {words_of(error)}") from None
            except HTTPError as error:
                reason = f"the API server does not answer: {words_of(error)}"
            if reason != told:
                on_event({"event": "waiting", "reason": one_line(reason)})
                told = reason
            time.sleep(ASK_SECONDS)

    def _going_on(self, words: Collection[str]) -> None:
        """Raises CommandError, with the last words of rank 0, when the job is over or gone."""
        job = self._jobs.get(name=self.run.name, namespace=self.plan.tenant.namespace)
        if end := _end(job):
            said = end.message or end.reason or end.type
            raise CommandError(f"{self.run.name} ended without a result: {one_line(said)}", *list(words)[-3:])

    def _warning(self) -> str:
        """The cluster's newest complaint about the job, its set or its pods; empty where there is none to be seen."""
        try:
            events: list[Any] = self._core.list_namespaced_event(
                self.plan.tenant.namespace, field_selector="type=Warning"
            ).items
        except ApiException:
            return ""  # a tenant need not be allowed to see them
        name = self.run.name
        about = [each for each in events if f"{each.involved_object.name}-".startswith(f"{name}-")]
        about.sort(key=lambda each: each.last_timestamp or each.event_time or each.metadata.creation_timestamp)
        return f"{about[-1].involved_object.name}: {' '.join(about[-1].message.split())}" if about else ""

    @property
    def _by_hand(self) -> str:
        """What a person types to take the job away."""
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
            raise CommandError(f"the cluster knows no {kind}: `gpufleet up {self.plan.stack}` first") from None

    def _found(self) -> Any | None:
        """The run's job, as long as it is there."""
        try:
            return self._jobs.get(name=self.run.name, namespace=self.plan.tenant.namespace)
        except NotFoundError:
            return None

    def _events(self, pod: str, heard: Counter[str], words: deque[str]) -> Iterator[Event]:
        """What a pod's log holds beyond the lines that were heard of it already."""
        log: Any = self._core.read_namespaced_pod_log(
            pod, self.plan.tenant.namespace, container="node", follow=True, _preload_content=False
        )
        for line in itertools.islice(lines(log.stream()), heard[pod], None):
            heard[pod] += 1
            if found := untrusted.event(line):
                yield found
            else:
                words.append(as_words(line))

    def _unfit(self, pod: str) -> str:
        """What the network check of an ended pod found, whose job then never began; empty where it found nothing."""
        try:
            status: Any = self._core.read_namespaced_pod(pod, self.plan.tenant.namespace).status
        except (ApiException, HTTPError):
            return ""  # it is gone, and what it said with it
        for container in status.init_container_statuses or ():
            if container.name == CHECK_CONTAINER and (end := container.state.terminated) and end.exit_code:
                return f"{pod}: {' '.join((end.message or end.reason or f'exit code {end.exit_code}').split())}"
        return ""

    def _over(self, pod: str) -> bool:
        try:
            found: Any = self._core.read_namespaced_pod(pod, self.plan.tenant.namespace)
        except ApiException as error:
            if error.status != 404:
                raise CommandError(words_of(error)) from None
            return True
        except HTTPError:
            return False
        return found.status.phase in ENDED


def _end(job: Any) -> Any | None:
    """The condition by which a job is over."""
    conditions = (job.status and job.status.conditions) or ()
    return next((each for each in conditions if each.type in OVER and each.status == "True"), None)


def _held_up(pods: Sequence[Any]) -> str:
    """What keeps a pod from beginning: no node for it, or no image."""
    for pod in pods:
        for condition in pod.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{pod.metadata.name}: {condition.message}"
        for container in pod.status.container_statuses or ():
            if waits := container.state.waiting:
                return f"{pod.metadata.name}: {' '.join(filter(None, [waits.reason, waits.message]))}"
    return ""
