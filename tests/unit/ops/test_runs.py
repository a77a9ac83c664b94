"""Which run a `gpufleet train` means, and what a run's folder says of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ops.jobs import runs
from ops.jobs.runs import Run
from ops.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def made(project: Project, name: str, *, finished: bool | None = None) -> Run:
    run = Run(project.runs("local") / name)
    run.folder.mkdir(parents=True)
    if finished is not None:
        run.result.write_text(json.dumps({"finished": finished, "steps": 10, "accuracy": None, "seconds": 1.0}))
    return run


def test_the_first_run_of_a_job_is_number_one(project: Project) -> None:
    run, resumes = runs.choose(project, "local", "mnist")

    assert (run.name, resumes) == ("mnist-1", False)


def test_a_finished_run_is_followed_by_a_new_one(project: Project) -> None:
    made(project, "mnist-1", finished=True)

    run, resumes = runs.choose(project, "local", "mnist")

    assert (run.name, resumes) == ("mnist-2", False)


def test_an_unfinished_run_is_resumed(project: Project) -> None:
    made(project, "mnist-1", finished=True)
    made(project, "mnist-2")

    run, resumes = runs.choose(project, "local", "mnist")

    assert (run.name, resumes) == ("mnist-2", True)


def test_the_run_of_another_job_is_not_resumed(project: Project) -> None:
    made(project, "mnist-long-1")

    run, resumes = runs.choose(project, "local", "mnist")

    assert (run.name, resumes) == ("mnist-1", False)


def test_runs_of_two_computers_have_their_own_places_on_the_nodes(project: Project, tmp_path: Path) -> None:
    one, other = (runs.choose(Project(folder), "local", "mnist")[0] for folder in (project.root, tmp_path / "other"))
    for run in (one, other):
        with run.following():
            pass
    place = one.place

    resumed, _ = runs.choose(project, "local", "mnist")
    with resumed.following():
        pass

    assert one.name == other.name == "mnist-1"
    assert (resumed.place, other.place != place) == (place, True)


def test_a_followed_run_is_running_and_no_longer_when_left(project: Project) -> None:
    run = Run(project.runs("local") / "mnist-1")

    with run.following():
        while_followed = run.state

    assert (while_followed, run.state) == ("running", "stopped")


def test_a_run_whose_follower_was_killed_is_stopped(project: Project) -> None:
    run = made(project, "mnist-1")
    gone = subprocess.Popen(["true"])
    gone.wait()
    (run.folder / "pid").write_text(str(gone.pid))

    assert run.state == "stopped"


def test_a_running_run_tells_its_last_step(project: Project) -> None:
    run = made(project, "mnist-1")
    (run.folder / "pid").write_text(str(os.getpid()))
    step = {"step": 5, "steps": 10, "loss": 2.0, "samples_per_second": 9.5}
    events = [{"event": "step", **step}, {"event": "checkpoint", "step": 5}]
    (run.folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events) + '{"event": "st')

    assert run.as_json() == {"name": "mnist-1", "state": "running", **step}
