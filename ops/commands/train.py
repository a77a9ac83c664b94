"""`gpufleet train`: one job on the nodes of a stack, followed to its result."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from infra.handover import Handover, Node
from ops import stack as cluster
from ops import untrusted
from ops.errors import CommandError
from ops.jobs import rendezvous, runs
from ops.jobs import workers as crew
from ops.jobs.runs import Run
from ops.jobs.workers import Event, Worker
from ops.nodes import ssh
from ops.project import Project
from ops.untrusted import METRICS_BYTES, REPORT_BYTES, Result, UnreadableError
from training import atomic
from training.config import job as config

PREEMPTED = 75
NO_LOGIN, NOT_WRITABLE = 3, 4  # exit codes of `_ship`'s line on a node
FETCH_SECONDS = 600.0  # for a run's metrics, by a slow link
MAKE_FOLDER = 'mkdir -p -- "$0" && test -w "$0"'
READ_END = 'test -f "$0" && exec tail -c "$1" -- "$0"'  # a job writes its results itself: a pipe has no end


@dataclass(frozen=True)
class Outcome:
    """A run that has ended well: where its files lie on this computer, and whether it went on from a checkpoint."""

    run: Run
    resumed: bool
    result: dict[str, Any]


def train(
    project: Project,
    stack: str,
    job: str,
    overrides: list[str],
    on_event: Callable[[Event], None],
    group: str | None = None,
) -> Outcome:
    """Runs a job on every node with GPUs, one process a GPU, and fetches its result; group: see `working`.

    Ctrl-C stops it with a checkpoint; the same command then resumes it. Raises CommandError: code 2 for a wrong job
    file, 75 when it was stopped with a durable checkpoint, 1 for anything else.
    """
    text = _checked(job, overrides)
    whole = cluster.discovered(project, stack).told
    if whole.kubernetes:
        return _submitted(project, stack, job, text, overrides, on_event, group)
    told = working(whole, group)
    if not told.nodes:
        raise CommandError(f"no node of {stack} that has GPUs is up: `gpufleet status {stack}` tells what is missing")
    if missing := [f"{s.name} is {s.state}: {s.reason}" for s in ssh.states(told) if s.state != "ready"]:
        raise CommandError(*missing, f"`gpufleet up {stack}` makes the nodes ready")
    run, resumed = runs.choose(project, stack, Path(job).stem)
    again = _command(job, stack, overrides, group)
    key = secrets.token_hex(32)
    with run.following(), rendezvous.store(whole, len(told.nodes), key) as store:
        files = {node.name: _ship(told, node, run, text) for node in told.nodes}
        workers = [
            Worker.start(told, node, _launch(told, node, run, files[node.name], store, overrides))
            for node in told.nodes
        ]
        for worker in workers if store else ():
            rendezvous.send_key(worker.process, key)
        ended = crew.follow(workers, run.folder / "events.jsonl", on_event)
    if PREEMPTED in ended.codes:
        raise CommandError(f"stopped with a checkpoint: {again} resumes {run.name}", code=PREEMPTED)
    if ended.reporter is None or any(ended.codes):
        raise CommandError(*ended.complaints(), f"{again} tries again from the last checkpoint")
    return Outcome(run, resumed, _fetch(told, ended.reporter.node, run))


def _submitted(
    project: Project,
    stack: str,
    job: str,
    text: str,
    overrides: list[str],
    on_event: Callable[[Event], None],
    group: str | None,
) -> Outcome:
    """The same on a cluster of Kubernetes, whose own machinery starts the ranks and starts them again.

    group: the first one or None, since the runtime of TrainJobs, which `up` leaves there, is of that one alone.
    """
    from infra.clouds.kubernetes.plan.model import KubernetesPlan
    from ops.clouds.kubernetes.cloud import connected
    from ops.jobs.kubernetes import Submission

    decided = cluster.decide(cluster.read(project, stack))
    if not isinstance(decided, KubernetesPlan):
        raise CommandError(f"jobs on {decided.place} are submitted with its own tools: see docs/kubernetes.md")
    own = decided.groups[0].name
    if group not in (None, own):
        raise CommandError(f"--group {group}: jobs run on the first group of `nodes`, {own}; leave --group out", code=2)
    run, resumed = runs.choose(project, stack, Path(job).stem)
    submission = Submission(decided, run, connected(decided))
    submission.clear(on_event, resumed=resumed)
    with run.following():
        try:
            submission.submit(text, [*overrides, f"out={_text(f'{decided.storage[0].mount}/runs/{run.place}')}"])
            result = submission.follow(on_event)
        except KeyboardInterrupt:
            on_event({"event": "stopping"})
            submission.stop()
            again = _command(job, stack, overrides, group)
            raise CommandError(
                f"stopped, with a checkpoint where one was due: {again} resumes", code=PREEMPTED
            ) from None
    told = untrusted.parsed(Result, json.dumps(result)).model_dump()
    atomic.write(run.result, json.dumps(told, indent=1).encode())
    return Outcome(run, resumed, told)


def _command(job: str, stack: str, overrides: list[str], group: str | None) -> str:
    """What a person types to go on: without its settings a run would be another one."""
    more = [part for setting in overrides for part in ("--set", setting)] + (["--group", group] if group else [])
    return f"`{shlex.join(['gpufleet', 'train', job, '--stack', stack, *more])}`"


def working(told: Handover, group: str | None = None) -> Handover:
    """The cluster without the nodes that only help, as a head does: with those of one group, if it is named.

    Those are the ones without GPUs; where no node has any, those of the group that keeps the rendezvous store, unless
    there is no other. Raises CommandError where several groups have GPUs and none is named: their nodes are not equal,
    and may not reach each other.
    """
    names = [each.name for each in told.groups]
    if group not in [None, *names]:
        raise CommandError(f"{told.stack} has no group {group}; it has {', '.join(names)}", code=2)
    gpus = {each.name for each in told.groups if each.gpus_per_node}
    if group is None and len(gpus) > 1:
        raise CommandError(f"a job runs on one group: name it with --group, one of {', '.join(sorted(gpus))}", code=2)
    others = {name for name in names if name != told.store.host}
    groups = {group} if group else gpus or others or {told.store.host}
    return told.model_copy(update={"nodes": tuple(node for node in told.nodes if node.group in groups)})


def _checked(job: str, overrides: list[str]) -> str:
    """The job file's text, once the job in it is known to be sound: before any node is asked for anything."""
    try:
        config.load(job, overrides)
        return config.find(job).read_text()
    except config.JobError as error:
        raise CommandError(*str(error).splitlines(), code=2) from None


def _ship(told: Handover, node: Node, run: Run, text: str) -> str:
    """Puts the job file on a node, whole or not at all, where the job may read it; returns its path there.

    Makes the run's folder, as the login of jobs: a run of an earlier version may belong to another one.
    """
    path, out = ssh.under(node, f"/var/lib/gpufleet/jobs/{run.place}.toml"), _out(told, node, run)
    folder, aside, final = (shlex.quote(p) for p in (str(PurePosixPath(path).parent), f"{path}.part", path))
    login = f"test -x {ssh.AS_JOB} || exit {NO_LOGIN}; " if node.prefix == "/" else ""
    made = f"{ssh.as_job(node, ['sh', '-c', MAKE_FOLDER, out])} < /dev/null || exit {NOT_WRITABLE}; "
    placed = f"umask 027 && mkdir -p {folder} && cat > {aside} && mv {aside} {final}"
    answer = ssh.run(told, node, login + made + placed, text)
    if answer.returncode == NO_LOGIN:
        raise CommandError(f"{node.name} has no login for jobs yet: `gpufleet up {told.stack}` makes it")
    if answer.returncode == NOT_WRITABLE:
        said = answer.stderr.strip() or f"{out} belongs to another login"
        raise CommandError(f"{node.name}: the login of jobs cannot write: {said}: give it that folder, or move it away")
    if answer.returncode:
        raise CommandError(f"{node.name} cannot take the job file: {ssh.last_line(answer.stderr)}")
    return path


def _out(told: Handover, node: Node, run: Run) -> str:
    """The run's folder as a node sees it: on storage that all nodes share, or on its own disk.

    Not on a bucket, as Mountpoint for S3 shows it: checkpoints are renamed when they are whole, and metrics are
    appended to; it does neither (mountpoint-s3, doc/SEMANTICS.md).
    """
    shared = (storage.path for storage in told.storage if storage.kind != "bucket")
    return f"{next(shared, ssh.under(node, '/var/lib/gpufleet'))}/runs/{run.place}"


def _text(text: str) -> str:
    """A text as TOML has it, which knows JSON's escapes but those of half a character."""
    return json.dumps(text, ensure_ascii=False)


def _launch(told: Handover, node: Node, run: Run, file: str, store: str, overrides: list[str]) -> str:
    """The shell line that runs the job's launcher on a node."""
    group = next(group for group in told.groups if group.name == node.group)
    words = ["-m", "training", "launch", file, "--attached", "--events"]
    words += ["--store", store, "--store-key", "-"] if store else []
    words += ["--nnodes", str(len(told.nodes)), "--nproc", str(max(1, group.gpus_per_node))]
    for setting in [*overrides, f"out={_text(_out(told, node, run))}"]:
        words += ["--set", setting]
    return rendezvous.python(told, node, words, group.variables)


def _fetch(told: Handover, node: Node, run: Run) -> dict[str, Any]:
    """Brings the run's metrics and result to this computer; the result last, since it is what makes a run finished."""
    whole = untrusted.metrics(_read(told, node, run, "metrics.jsonl", METRICS_BYTES))
    atomic.write(run.folder / "metrics.jsonl", "".join(f"{json.dumps(line)}\n" for line in whole).encode())
    try:
        result = untrusted.parsed(Result, _read(told, node, run, "result.json", REPORT_BYTES)).model_dump()
    except UnreadableError as fault:
        raise CommandError(f"{node.name} sends an unreadable result.json: {fault}") from None
    atomic.write(run.result, json.dumps(result, indent=1).encode())
    return result


def _read(told: Handover, node: Node, run: Run, name: str, most: int) -> bytes:
    """The end of a file in the run's folder on a node, read as the login of jobs: a link in its place leads to no file
    that a job could not read itself. Raises CommandError."""
    file = f"{_out(told, node, run)}/{name}"
    line = ssh.as_job(node, ["sh", "-c", READ_END, file, str(most)])
    answer = ssh.run(told, node, line, seconds=FETCH_SECONDS, most=most)
    if answer.returncode:
        raise CommandError(f"cannot fetch {file} from {node.name}: {ssh.last_line(answer.stderr) or 'it is no file'}")
    return answer.stdout.encode()
