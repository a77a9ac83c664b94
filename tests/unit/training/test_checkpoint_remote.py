"""Copies in an object store, on a real server of its protocol."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import torch
from moto.server import ThreadedMotoServer
from trained import After

from training.checkpoint import remote
from training.checkpoint.manifest import Damaged, read, read_manifest
from training.checkpoint.remote import Remote, Unreachable
from training.checkpoint.store import Store
from training.config import Job, JobError
from training.loop import train
from training.report import Report

PART = 5 * 2**20  # the least that S3 takes


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3 client with an empty bucket named `models`."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(remote, "PART_BYTES", PART)
    client: Any = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="models")
    yield client
    for entry in client.list_objects_v2(Bucket="models").get("Contents", ()):
        client.delete_object(Bucket="models", Key=entry["Key"])
    for upload in client.list_multipart_uploads(Bucket="models").get("Uploads", ()):
        client.abort_multipart_upload(Bucket="models", Key=upload["Key"], UploadId=upload["UploadId"])
    client.delete_bucket(Bucket="models")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint of three parts."""
    tensors = {"w": torch.arange(3 * 2**20, dtype=torch.float32)}
    return Store(tmp_path / "here").save(7, tensors, {"world_size": 1})


def test_a_checkpoint_is_sent_in_parts_and_comes_back_as_it_was(
    bucket: Any, endpoint: str, saved: Path, tmp_path: Path
):
    there = Remote("s3://models/runs/a", endpoint)
    there.upload(saved, read_manifest(saved))

    back = there.fetch(7, Store(tmp_path / "back"))

    assert there.steps() == [7]
    assert torch.equal(read(back).tensors()["w"], read(saved).tensors()["w"])
    assert bucket.head_object(Bucket="models", Key="runs/a/step-00000007/rank-0.safetensors")["ETag"].endswith('-3"')


def cut_off(there: Remote, folder: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An upload that ends when it sends part `number`; returns the parts that are sent, of later uploads too."""
    sent: list[int] = []
    upload_part = there._client.upload_part

    def counted(**part: Any) -> Any:
        sent.append(part["PartNumber"])
        if sent == [*range(1, number + 1)]:
            raise ConnectionError
        return upload_part(**part)

    monkeypatch.setattr(there._client, "upload_part", counted)
    with pytest.raises(ConnectionError):
        there.upload(folder, read_manifest(folder))
    return sent


def test_a_cut_upload_goes_on_with_the_parts_that_are_missing(
    bucket: Any, endpoint: str, saved: Path, monkeypatch: pytest.MonkeyPatch
):
    there = Remote("s3://models/runs", endpoint)
    sent = cut_off(there, saved, 3, monkeypatch)
    assert there.steps() == []

    there.upload(saved, read_manifest(saved))

    assert sent == [1, 2, 3, 3]
    assert there.steps() == [7]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A checkpoint of the same step and size with other bits."""
    tensors = {"w": -torch.arange(3 * 2**20, dtype=torch.float32)}
    return Store(tmp_path / "other").save(7, tensors, {"world_size": 2})


def test_a_file_that_is_there_with_other_bits_is_sent_again(
    bucket: Any, endpoint: str, saved: Path, other: Path, tmp_path: Path
):
    there = Remote("s3://models", endpoint)
    there.upload(saved, read_manifest(saved))
    bucket.delete_object(Bucket="models", Key="step-00000007/manifest.json")  # as if it was lost before it was sent

    there.upload(other, read_manifest(other))

    back = read(there.fetch(7, Store(tmp_path / "back")))
    assert torch.equal(back.tensors()["w"], read(other).tensors()["w"])


def test_the_manifest_that_was_read_is_sent(bucket: Any, endpoint: str, saved: Path):
    sealed, text = read_manifest(saved), (saved / "manifest.json").read_bytes()
    (saved / "manifest.json").write_bytes(b"else")

    Remote("s3://models", endpoint).upload(saved, sealed)

    sent = bucket.get_object(Bucket="models", Key="step-00000007/manifest.json")["Body"].read()
    assert sent == text


def test_a_file_that_is_there_is_not_sent_again(
    bucket: Any, endpoint: str, saved: Path, monkeypatch: pytest.MonkeyPatch
):
    there = Remote("s3://models", endpoint)
    there.upload(saved, read_manifest(saved))
    monkeypatch.setattr(there, "_send", None)

    there.upload(saved, read_manifest(saved))


@pytest.mark.parametrize("number", [1, 3])
def test_a_cut_upload_of_other_bits_is_not_gone_on_with(
    bucket: Any, endpoint: str, saved: Path, other: Path, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
):
    there = Remote("s3://models", endpoint)
    cut_off(there, saved, number, monkeypatch)

    there.upload(other, read_manifest(other))

    back = read(there.fetch(7, Store(tmp_path / "back")))
    assert torch.equal(back.tensors()["w"], read(other).tensors()["w"])
    assert not bucket.list_multipart_uploads(Bucket="models").get("Uploads")


def test_a_cut_upload_whose_other_bits_were_still_to_come_does_not_count(
    bucket: Any, endpoint: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    there = Remote("s3://models", endpoint)
    cut_off(there, saved, 3, monkeypatch)
    tensors = {name: tensor.clone() for name, tensor in read(saved).tensors().items()}
    tensors["w"][-1] = 0
    other = Store(tmp_path / "other").save(7, tensors, {"world_size": 1})

    with pytest.raises(Unreachable, match="arrived as other bytes"):
        there.upload(other, read_manifest(other))

    assert there.steps() == []
    there.upload(other, read_manifest(other))
    assert there.steps() == [7]


def test_what_was_changed_in_the_store_is_not_taken(bucket: Any, endpoint: str, saved: Path, tmp_path: Path):
    there = Remote("s3://models", endpoint)
    there.upload(saved, read_manifest(saved))
    bucket.put_object(Bucket="models", Key="step-00000007/rank-0.safetensors", Body=b"else")

    with pytest.raises(Damaged, match=r"rank-0\.safetensors is not what was written"):
        there.fetch(7, Store(tmp_path / "back"))

    assert not Store(tmp_path / "back").folders()


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
        raise Unreachable("cut off")

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


def test_a_copy_that_fails_is_told_and_training_goes_on(saved: Path, tmp_path: Path):
    told: list[str] = []

    class Broken:
        def upload(self, folder: Path, sealed: object) -> None:
            raise Unreachable("the bucket is gone")

    uploads = remote.Uploads(Broken(), told.append)  # pyright: ignore[reportArgumentType]
    uploads.offer(saved, read_manifest(saved))
    uploads.finish()

    assert told == ["step-00000007 is not uploaded: the bucket is gone"]
