"""Runs that upload their checkpoints, and go on from what was uploaded."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from trained import After

from training.checkpoint import uploads as copies
from training.checkpoint.manifest import read_manifest
from training.checkpoint.remote import ObjectStoreError, Remote, Uploads
from training.config.job import Job, JobError
from training.elastic.deadline import SHUTDOWN
from training.loop import train
from training.metrics.events import Report


def test_a_run_that_lost_its_folder_goes_on_from_the_uploaded_checkpoint(
    bucket: Any, endpoint: str, small: Callable[..., Job]
):
    where = ("checkpoint.upload='s3://models/lost'", f"checkpoint.endpoint='{endpoint}'")
    straight, job = train(small(out="straight")), small(*where, "checkpoint.every_steps=4")
    train(job, stop=After(9))
    shutil.rmtree(job.out)

    resumed = train(job)

    assert [line["step"] for line in map(json.loads, (job.out / "metrics.jsonl").open()) if "loss" in line] == [
        10,
        11,
        12,
    ]
    assert resumed.digest == straight.digest


def test_a_bucket_that_is_not_there_is_told_before_the_first_step(
    bucket: Any, endpoint: str, small: Callable[..., Job]
):
    job = small("checkpoint.upload='s3://nowhere/a'", f"checkpoint.endpoint='{endpoint}'")

    with pytest.raises(JobError, match=r"checkpoint\.upload: .*NoSuchBucket"):
        train(job)


def test_an_upload_that_was_cut_off_is_made_up_for_by_the_next_start(
    bucket: Any, endpoint: str, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    job = small("checkpoint.upload='s3://models'", f"checkpoint.endpoint='{endpoint}'")
    there = Remote("s3://models", endpoint)

    tried: list[str] = []

    def cut_off(_: Remote, folder: Path, sealed: object) -> None:
        tried.append(folder.name)
        raise ObjectStoreError("cut off")

    with monkeypatch.context() as patch:
        patch.setattr(Remote, "upload", cut_off)
        first = train(job)
    assert there.steps() == []

    again = train(job)

    assert (again.finished, again.digest) == (True, first.digest)
    assert there.steps() == [12]
    monkeypatch.setattr(Remote, "upload", cut_off)
    train(job)
    assert tried == ["step-00000012"]  # of the first run: what is there is not sent again


class Stuck(Report):
    """Holds every upload until the end of the test; keeps what it is told, and who could see the result by then."""

    def __init__(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        self.job, self.began, self.ended = job, threading.Event(), threading.Event()
        self.told: list[str] = []
        self.marked: list[bool] = []
        monkeypatch.setattr(Remote, "upload", self.upload)
        monkeypatch.setattr(copies, "ASK_SECONDS", 0.1)

    def upload(self, *_: object) -> None:
        self.began.set()
        self.ended.wait(30)

    def note(self, text: str) -> None:
        self.told.append(text)
        self.marked.append((self.job.out / "PREEMPTED").exists())


def test_a_stopped_run_leaves_in_time_and_its_copy_is_sent_by_the_next_start(
    bucket: Any, endpoint: str, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    job = small("checkpoint.upload='s3://models'", f"checkpoint.endpoint='{endpoint}'")
    with monkeypatch.context() as patch:
        patch.setenv(SHUTDOWN, "1")
        stuck = Stuck(job, patch)
        result = train(job, report=stuck, stop=After(4))
        stuck.ended.set()

    assert (result.steps, result.finished) == (4, False)
    assert stuck.told == ["step 4 is not uploaded yet: the next start uploads it"]
    assert stuck.marked == [True]
    train(job, stop=After(0))
    assert Remote("s3://models", endpoint).steps() == [4]


def test_a_finished_run_that_is_asked_to_leave_does_not_wait_for_its_copy(
    bucket: Any, endpoint: str, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(SHUTDOWN, "1")
    job = small("checkpoint.upload='s3://models'", f"checkpoint.endpoint='{endpoint}'", "steps=4")
    stuck = Stuck(job, monkeypatch)

    class OnceItUploads:
        def requested(self) -> bool:
            return stuck.began.is_set() and (job.out / "result.json").exists()

    result = train(job, report=stuck, stop=OnceItUploads())
    stuck.ended.set()

    assert (result.steps, result.finished) == (4, True)
    assert stuck.told == ["step 4 is not uploaded yet: the next start uploads it"]


def slow_copy(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    stuck = Stuck(job, monkeypatch)

    def free() -> None:
        stuck.began.wait(60)
        time.sleep(3)  # longer than ranks wait for each other here
        stuck.ended.set()

    threading.Thread(target=free, daemon=True).start()
    train(job, report=stuck)
    return stuck.told


@pytest.mark.usefixtures("bucket")
def test_the_copy_of_a_finished_run_may_take_longer_than_ranks_wait_for_each_other(
    endpoint: str, small: Callable[..., Job], ranks: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
):
    where = ("checkpoint.upload='s3://models'", f"checkpoint.endpoint='{endpoint}'")
    job = small(*where, "steps=2", "health.start_seconds=2", "health.step_seconds=1")

    assert ranks(2, slow_copy, job, monkeypatch) == [[], []]


@pytest.mark.parametrize(
    ("settings", "profile", "told"),
    [
        (
            ("checkpoint.upload='s3://models'",),
            "nobody",
            r"checkpoint\.upload: .*profile \(nobody\) could not be found",
        ),
        (("checkpoint.upload='s3://no name'",), None, r"checkpoint\.upload: .*Invalid bucket name"),
        (("checkpoint.upload='s3://models'", "checkpoint.endpoint='http://'"), None, r"checkpoint\.endpoint: Invalid"),
    ],
)
def test_what_makes_uploads_impossible_is_one_line(
    settings: tuple[str, ...],
    profile: str | None,
    told: str,
    small: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)

    with pytest.raises(JobError, match=told) as error:
        train(small(*settings))

    assert len(str(error.value).splitlines()) == 1


def test_a_slow_copy_is_sent_whole_though_newer_checkpoints_are_saved_meanwhile(
    bucket: Any, endpoint: str, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    where = ("checkpoint.upload='s3://models'", f"checkpoint.endpoint='{endpoint}'")
    job, send = small(*where, "steps=6", "checkpoint.every_steps=1"), Remote._send
    began, saved, held = threading.Event(), threading.Event(), []

    class Told(Report):
        def checkpoint(self, step: int) -> None:
            if step == 2:
                assert began.wait(60)
            if step == 5:
                held.append(sorted(folder.name for folder in (job.out / "checkpoints").glob("step-*")))
                saved.set()

    def slow(there: Remote, path: Path, key: str, sha256: str) -> None:
        began.set()
        assert saved.wait(60)
        send(there, path, key, sha256)

    monkeypatch.setattr(Remote, "_send", slow)
    train(job, report=Told())

    assert held == [["step-00000001", "step-00000004", "step-00000005"]]
    assert {1, 6} <= {*Remote("s3://models", endpoint).steps()}


@pytest.mark.parametrize(
    ("fault", "told"),
    [(ObjectStoreError("the bucket is gone"), "the bucket is gone"), (KeyError("UploadId"), "KeyError: 'UploadId'")],
)
def test_a_copy_that_fails_is_told_and_the_next_one_is_sent(fault: Exception, told: str, saved: Path):
    notes: list[str] = []
    tried, sent = threading.Event(), []

    class BrokenOnce:
        def upload(self, folder: Path, sealed: object) -> None:
            if not tried.is_set():
                tried.set()
                raise fault
            sent.append(folder)

    uploads = Uploads(BrokenOnce(), notes.append)  # pyright: ignore[reportArgumentType]
    uploads.offer(saved, read_manifest(saved))
    assert tried.wait(60)
    uploads.offer(saved, read_manifest(saved))
    uploads.finish()

    assert notes == [f"step-00000007 is not uploaded: {told}"]
    assert sent == [saved]
