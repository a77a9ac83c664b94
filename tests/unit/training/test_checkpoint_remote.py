"""Copies in an object store, on a real server of its protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from boto3.exceptions import RetriesExceededError

from training.checkpoint.manifest import CorruptCheckpointError, read, read_manifest
from training.checkpoint.remote import ObjectStoreError, Remote
from training.checkpoint.store import Store


def test_a_checkpoint_is_sent_in_parts_and_comes_back_as_it_was(
    bucket: Any, endpoint: str, saved: Path, tmp_path: Path
):
    there = Remote("s3://models/runs/a", endpoint)
    there.upload(saved, read_manifest(saved))

    back = there.fetch(7, Store(tmp_path / "back"))

    assert there.steps() == [7]
    assert torch.equal(read(back).tensors()["w"], read(saved).tensors()["w"])
    assert bucket.head_object(Bucket="models", Key="runs/a/step-00000007/rank-0.safetensors")["ETag"].endswith('-3"')


def test_what_only_looks_like_a_checkpoint_counts_as_none(bucket: Any, endpoint: str):
    for key in (
        "step-00000009.bak/manifest.json",
        "old/step-00000009/manifest.json",
        "step-00000009/manifest.json.bak",
    ):
        bucket.put_object(Bucket="models", Key=key, Body=b"")
    bucket.put_object(Bucket="models", Key="step-100000000/manifest.json", Body=b"")

    assert Remote("s3://models", endpoint).steps() == [100_000_000]


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

    with pytest.raises(ObjectStoreError, match="arrived as other bytes"):
        there.upload(other, read_manifest(other))

    assert there.steps() == []
    there.upload(other, read_manifest(other))
    assert there.steps() == [7]


def test_what_was_changed_in_the_store_is_not_taken(bucket: Any, endpoint: str, saved: Path, tmp_path: Path):
    there = Remote("s3://models", endpoint)
    there.upload(saved, read_manifest(saved))
    bucket.put_object(Bucket="models", Key="step-00000007/rank-0.safetensors", Body=b"else")

    with pytest.raises(CorruptCheckpointError, match=r"rank-0\.safetensors is not what was written"):
        there.fetch(7, Store(tmp_path / "back"))

    assert not Store(tmp_path / "back").folders()


def test_a_copy_that_is_cut_off_on_its_way_back_again_and_again_is_told(
    bucket: Any, endpoint: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    there = Remote("s3://models", endpoint)
    there.upload(saved, read_manifest(saved))

    def cut_off(*_: object) -> None:
        raise RetriesExceededError(ConnectionResetError("reset by peer"))

    monkeypatch.setattr(there._client, "download_file", cut_off)

    with pytest.raises(ObjectStoreError, match="Max Retries Exceeded"):
        there.fetch(7, Store(tmp_path / "back"))
