"""`gpufleet train`: one job on the nodes of a stack, followed to its result."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from infra.handover import Handover
from ops import stack as stacks
from ops.clouds import base as clouds
from ops.console.terminal import Json, Screen, show
from ops.errors import CommandError
from ops.jobs import base, progress, runs, storage_grants
from ops.jobs.base import Job, JobRunner, OnEvent, Outcome
from ops.nodes import ssh
from ops.project import Project
from training.config import job as config


def command(
    job: Annotated[str, typer.Argument(help="a job file, or the name of a shipped one (training/jobs)")],
    stack: Annotated[str, typer.Option("--stack", "-s", metavar="STACK", help="where to run it")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="change a key, e.g. optimizer.lr=0.05"),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="whose nodes, where several groups have GPUs")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a training job on a stack's nodes, follow it, and fetch its result. Ctrl-C stops it with a checkpoint."""
    project = Project.find()
    with progress.Progress(Screen(), quiet=as_json) as shown:
        outcome = train(project, stack, job, setting or [], shown.event, group)
    show(progress.document(project, stack, outcome), as_json, progress.text)


def train(
    project: Project,
    stack: str,
    job: str,
    overrides: Sequence[str],
    on_event: OnEvent,
    group: str | None = None,
) -> Outcome:
    """Runs a job on every node with GPUs, one process a GPU, and fetches its result; group: see `working`.

    Ctrl-C stops it with a checkpoint; the same command then resumes it. Raises CommandError: code 2 for a wrong job
    file, 75 when it was stopped with a durable checkpoint, 1 for anything else.
    """
    text, upload = _checked(job, overrides)
    handover = stacks.discovered(project, stack).handover
    run, resumed = runs.choose(project, stack, Path(job).stem)
    whole = Job(run, text, tuple(overrides), resumed, _command(job, stack, overrides, group), upload)
    if handover.kubernetes:
        runner = clouds.of(project, stacks.decide(stacks.read(project, stack))).cluster_runner(whole, group)
    else:
        runner = _over_ssh(handover, whole, group)
    return base.run(runner, on_event)


def _over_ssh(handover: Handover, job: Job, group: str | None) -> JobRunner:
    """Raises CommandError while a node of the group is not ready."""
    from ops.jobs.ssh import SshRunner

    chosen = working(handover, group)
    if not chosen.nodes:
        raise CommandError(f"no GPU node of {handover.stack} is up: see `gpufleet status {handover.stack}`")
    if missing := [f"{s.name} is {s.state}: {s.reason}" for s in ssh.states(chosen) if s.state != "ready"]:
        raise CommandError(*missing, f"`gpufleet up {handover.stack}` makes the nodes ready")
    return SshRunner(handover, chosen, job, storage_grants.of_run(chosen, job.upload))


def _command(job: str, stack: str, overrides: Sequence[str], group: str | None) -> str:
    """What a person types to resume: without its settings a run would be another one."""
    more = [part for setting in overrides for part in ("--set", setting)] + (["--group", group] if group else [])
    return f"`{shlex.join(['gpufleet', 'train', job, '--stack', stack, *more])}`"


def working(handover: Handover, group: str | None = None) -> Handover:
    """The cluster with those nodes alone that run ranks: those of one group, if it is named, else all that have GPUs.

    Where no node has any GPU: all but the group that runs the rendezvous store, unless there is no other. Raises
    CommandError where several groups have GPUs and none is named: their nodes are not equal, and may not reach each
    other.
    """
    names = [item.name for item in handover.groups]
    if group not in [None, *names]:
        raise CommandError(f"{handover.stack} has no group {group}; it has {', '.join(names)}", code=2)
    with_gpus = {item.name for item in handover.groups if item.gpus_per_node}
    if group is None and len(with_gpus) > 1:
        choices = ", ".join(sorted(with_gpus))
        raise CommandError(f"a job runs on one group: name it with --group, one of {choices}", code=2)
    others = {name for name in names if name != handover.store.host}
    groups = {group} if group else with_gpus or others or {handover.store.host}
    return handover.model_copy(update={"nodes": tuple(node for node in handover.nodes if node.group in groups)})


def _checked(job: str, overrides: Sequence[str]) -> tuple[str, str | None]:
    """The job file's text and where it uploads to, once the job is known to be valid: before any node is contacted."""
    try:
        upload = config.load(job, list(overrides)).checkpoint.upload
        return config.find(job).read_text(), upload
    except config.JobError as error:
        raise CommandError(*str(error).splitlines(), code=2) from None
