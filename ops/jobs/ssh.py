"""A job on hosts over SSH: a launcher on each node, which starts one rank per GPU, and one rendezvous store."""

from __future__ import annotations

import json
import secrets
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from infra.handover import Handover, Node
from ops import untrusted
from ops.errors import CommandError
from ops.jobs import rendezvous, storage_grants
from ops.jobs.base import PREEMPTED, Job, JobRunner, OnEvent, out_setting
from ops.jobs.runs import Run
from ops.jobs.workers import Worker, Workers
from ops.nodes import ssh
from ops.untrusted import METRICS_BYTES, REPORT_BYTES, Result, UnreadableError
from training import atomic

NO_LOGIN, NOT_WRITABLE, NO_SESSIONS = 3, 4, 5  # exit codes of `_ship`'s line on a node
FETCH_SECONDS = 600.0  # for a run's metrics, by a slow link
MAKE_FOLDER = 'mkdir -p -- "$0" && test -w "$0"'
READ_END = 'test -f "$0" && exec tail -c "$1" -- "$0"'  # a job writes its results itself: a pipe has no end


@dataclass
class SshRunner(JobRunner):
    """cluster: with all its nodes, one of which may keep the rendezvous store. handover: with those that run ranks.

    grant: what the launchers may do in buckets until they end, see `storage_grants`; empty for nothing.
    """

    cluster: Handover
    handover: Handover
    job: Job
    grant: str = ""
    _workers: Workers = field(default_factory=Workers)
    _opened: ExitStack = field(default_factory=ExitStack)

    def start(self, on_event: OnEvent) -> None:
        handover, run, key = self.handover, self.job.run, secrets.token_hex(32)
        store = self._opened.enter_context(rendezvous.store(self.cluster, len(handover.nodes), key))
        files = {node.name: _ship(handover, node, run, self.job.text) for node in handover.nodes}
        self._workers = Workers(
            [Worker.start(handover, node, self._launch(node, files[node.name], store)) for node in handover.nodes]
        )
        for worker in self._workers.members if store else ():
            rendezvous.send_key(worker.process, key)

    def follow(self, on_event: OnEvent) -> None:
        self._workers.follow(self.job.run.folder / "events.jsonl", on_event)

    def stop(self) -> None:
        self._workers.stop()

    def close(self) -> None:
        self._workers.stop()
        self._opened.close()

    def result(self) -> dict[str, Any]:
        workers, command = self._workers, self.job.command
        if PREEMPTED in workers.codes:
            raise CommandError(f"stopped with a checkpoint: {command} resumes {self.job.run.name}", code=PREEMPTED)
        if workers.reporter is None or any(workers.codes):
            raise CommandError(*workers.complaints(), f"{command} tries again from the last checkpoint")
        return _fetch(self.handover, workers.reporter.node, self.job.run)

    def _launch(self, node: Node, file: str, store: str) -> str:
        """The shell line that runs the job's launcher on a node."""
        handover = self.handover
        group = next(group for group in handover.groups if group.name == node.group)
        arguments = ["-m", "training", "launch", file, "--attached", "--events"]
        arguments += ["--store", store, "--store-key", "-"] if store else []
        arguments += ["--nnodes", str(len(handover.nodes)), "--nproc", str(max(1, group.gpus_per_node))]
        for setting in [*self.job.overrides, out_setting(_out(handover, node, self.job.run))]:
            arguments += ["--set", setting]
        before = storage_grants.command(ssh.JOB_LOGIN, self.job.run.place, self.grant) if self.grant else ()
        return rendezvous.python(handover, node, arguments, group.variables, before)


def _ship(handover: Handover, node: Node, run: Run, text: str) -> str:
    """Puts the job file on a node, whole or not at all, where the job may read it; returns its path there.

    Makes the run's folder as the job login: a run of an earlier version may belong to another one.
    """
    path, out = ssh.under(node, f"/var/lib/gpufleet/jobs/{run.place}.toml"), _out(handover, node, run)
    folder, aside, final = (shlex.quote(p) for p in (str(PurePosixPath(path).parent), f"{path}.part", path))
    login = f"test -x {ssh.AS_JOB} || exit {NO_LOGIN}; " if node.prefix == "/" else ""
    login += f"test -x {storage_grants.WITH_GRANT} || exit {NO_SESSIONS}; " if handover.storage_role else ""
    make_folder = f"{ssh.as_job(node, ['sh', '-c', MAKE_FOLDER, out])} < /dev/null || exit {NOT_WRITABLE}; "
    place_file = f"umask 027 && mkdir -p {folder} && cat > {aside} && mv {aside} {final}"
    answer = ssh.run(handover, node, login + make_folder + place_file, text)
    if answer.returncode == NO_LOGIN:
        raise CommandError(f"{node.name} has no job login yet: `gpufleet up {handover.stack}` creates it")
    if answer.returncode == NO_SESSIONS:
        raise CommandError(f"{node.name} gives no storage sessions yet: `gpufleet up {handover.stack}` sets them up")
    if answer.returncode == NOT_WRITABLE:
        reason = answer.stderr.strip() or f"{out} belongs to another login"
        raise CommandError(f"{node.name}: the job login cannot write: {reason}: change the owner of that folder")
    if answer.returncode:
        raise CommandError(f"cannot copy the job file to {node.name}: {ssh.last_line(answer.stderr)}")
    return path


def _out(handover: Handover, node: Node, run: Run) -> str:
    """The run's folder as a node sees it: on storage that all nodes share, or on its own disk.

    Not on a bucket, as Mountpoint for S3 shows it: checkpoints are renamed when they are whole, and metrics are
    appended to; it does neither (mountpoint-s3, doc/SEMANTICS.md).
    """
    shared = (storage.path for storage in handover.storage if storage.kind != "bucket")
    return f"{next(shared, ssh.under(node, '/var/lib/gpufleet'))}/runs/{run.place}"


def _fetch(handover: Handover, node: Node, run: Run) -> dict[str, Any]:
    """Brings the run's metrics and result to this computer; the result last, since it is what makes a run finished."""
    metrics = untrusted.metrics(_read(handover, node, run, "metrics.jsonl", METRICS_BYTES))
    atomic.write(run.folder / "metrics.jsonl", "".join(f"{json.dumps(line)}\n" for line in metrics).encode())
    try:
        result = untrusted.parsed(Result, _read(handover, node, run, "result.json", REPORT_BYTES)).model_dump()
    except UnreadableError as error:
        raise CommandError(f"{node.name} sends an unreadable result.json: {error}") from None
    atomic.write(run.result, json.dumps(result, indent=1).encode())
    return result


def _read(handover: Handover, node: Node, run: Run, name: str, most: int) -> bytes:
    """The end of a file in the run's folder on a node, read as the job login: a link in its place leads to no file
    that a job could not read itself. Raises CommandError."""
    file = f"{_out(handover, node, run)}/{name}"
    line = ssh.as_job(node, ["sh", "-c", READ_END, file, str(most)])
    answer = ssh.run(handover, node, line, seconds=FETCH_SECONDS, most=most)
    if answer.returncode:
        reason = ssh.last_line(answer.stderr) or "it is not a regular file"
        raise CommandError(f"cannot fetch {file} from {node.name}: {reason}")
    return answer.stdout.encode()
