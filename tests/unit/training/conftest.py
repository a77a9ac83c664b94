"""Small jobs, real ranks, and an object store."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import get_ready_to_fork, on_ranks, small_job
from small_checkpoints import two_checkpoints

from training.checkpoint import remote
from training.checkpoint.store import Store
from training.config.job import Job
from training.data import download

PART = 5 * 2**20  # the least that S3 takes


@pytest.fixture(autouse=True, scope="session")
def _ready_to_fork() -> None:
    get_ready_to_fork()


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Job]:
    """`small("steps=20", out="a")`: a job of seconds with overrides, its results in the test's folder."""

    def make(*overrides: str, out: str = "run") -> Job:
        return small_job(tmp_path, out, *overrides)

    return make


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """With checkpoints of the steps 10 and 20."""
    return two_checkpoints(tmp_path / "checkpoints")


@pytest.fixture
def ranks() -> Callable[..., list[Any]]:
    """`ranks(3, train, job)`: runs it on three ranks, returns their results in rank order."""
    return on_ranks


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that speaks S3."""
    from moto.server import ThreadedMotoServer  # seconds, which most tests can spare

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3 client with an empty bucket named `models`."""
    import boto3

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


def archive(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, str]], None]:
    """`carried("sotu", {name: text})`: the set is there, with these files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def put(name: str, files: dict[str, str]) -> None:
        path = download.place(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive(files))

    return put
