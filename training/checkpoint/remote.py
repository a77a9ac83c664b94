"""Checkpoints in an S3-compatible object store: multipart upload that resumes, verified download."""

from __future__ import annotations

import base64
import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from training.checkpoint.manifest import MANIFEST, MOST_BYTES, CorruptCheckpointError, Manifest, parse, proven
from training.checkpoint.naming import folder_name, step_of
from training.checkpoint.safetensors_file import Written, sync
from training.checkpoint.store import Store

PART_BYTES = 32 * 2**20  # S3 takes 5 MiB to 5 GiB a part and 10,000 parts a file


class ObjectStoreError(Exception):
    """The object store refused or did not answer; the message is its own."""


class InvalidEndpointError(ObjectStoreError):
    """The endpoint of the object store is no URL."""


class Remote:
    """The checkpoints under s3://bucket/prefix. One counts once its manifest is there, which is sent last.

    Raises InvalidEndpointError, and ObjectStoreError where boto3 finds no such profile.
    """

    def __init__(self, url: str, endpoint: str | None) -> None:
        import boto3  # only a job that uploads needs it
        from boto3.exceptions import Boto3Error
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        self._errors = (Boto3Error, BotoCoreError, ClientError)
        self._bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        # other services know Content-MD5, which every part is sent with, but not AWS's newer checksums
        plain = Config(
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            retries={"mode": "standard", "max_attempts": 5},
        )
        try:
            with self._one_line_errors():
                self._client: Any = boto3.client("s3", endpoint_url=endpoint, config=plain)
        except ValueError as error:
            raise InvalidEndpointError(str(error)) from error

    def steps(self) -> list[int]:
        """The steps that are there as a whole, oldest first."""
        with self._one_line_errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
            keys = [entry["Key"].removeprefix(self._prefix) for page in pages for entry in page.get("Contents", ())]
        names = (key.removesuffix(f"/{MANIFEST}") for key in keys if key.endswith(f"/{MANIFEST}"))
        return sorted(step for step in map(step_of, names) if step is not None)

    def upload(self, folder: Path, sealed: Manifest) -> None:
        """Uploads a checkpoint, and resumes where an earlier try was cut off; files of the same name and other bytes
        are replaced. Raises ObjectStoreError, and OSError where the folder is gone meanwhile."""
        with self._one_line_errors():
            for name, written in sealed.files.items():
                key = f"{self._prefix}{folder.name}/{name}"
                if self._recorded(key) != written:
                    self._send(folder / name, key, written.sha256)
                if self._recorded(key) != written:
                    raise ObjectStoreError(f"{key} arrived as other bytes, or without the record of their sha256")
            text = sealed.encoded()
            key = f"{self._prefix}{folder.name}/{MANIFEST}"
            self._client.put_object(Bucket=self._bucket, Key=key, Body=text, ContentMD5=in_header(md5(text)))

    def fetch(self, step: int, store: Store) -> Path:
        """Downloads a checkpoint into a store, every file verified against the manifest. Raises CorruptCheckpointError,
        ObjectStoreError."""
        name = folder_name(step)
        aside = store.aside(step)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        with self._one_line_errors():
            response = self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}{name}/{MANIFEST}")
            if response["ContentLength"] > MOST_BYTES:
                raise CorruptCheckpointError(f"the manifest is longer than {MOST_BYTES} bytes")
            text = response["Body"].read(MOST_BYTES)
            sealed = parse(text, store.key)
            if sealed.step != step:
                raise CorruptCheckpointError(f"the manifest is that of step {sealed.step}")
            for file, written in sealed.files.items():
                head = self._client.head_object(Bucket=self._bucket, Key=f"{self._prefix}{name}/{file}")
                if head["ContentLength"] != written.bytes:  # before a disk is full of it
                    raise CorruptCheckpointError(f"{file} is not what was written")
                self._client.download_file(self._bucket, f"{self._prefix}{name}/{file}", str(aside / file))
                with (aside / file).open("rb+") as whole:
                    sync(whole)
                proven(aside, sealed, file)
        return store.adopt(step, text)

    def _send(self, path: Path, key: str, sha256: str) -> None:
        """In parts, each with its MD5, which the store checks; the whole is recorded with its sha256. Goes on with an
        upload that was cut off only where parts show that it was begun for the same bytes: it has their record."""
        at = {"Bucket": self._bucket, "Key": key}
        upload, there = self._begun(key)
        if upload and (not there or there != [md5(data).hex() for data in islice(pieces(path), len(there))]):
            self._client.abort_multipart_upload(**at, UploadId=upload)
            upload, there = None, []
        upload = upload or self._client.create_multipart_upload(**at, Metadata={"sha256": sha256})["UploadId"]
        for number, data in enumerate(pieces(path), 1):
            if number > len(there):
                body: dict[str, Any] = {"Body": data, "ContentMD5": in_header(md5(data))}
                self._client.upload_part(**at, UploadId=upload, PartNumber=number, **body)
        complete = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in self._parts(key, upload)]
        self._client.complete_multipart_upload(**at, UploadId=upload, MultipartUpload={"Parts": complete})

    def _begun(self, key: str) -> tuple[str | None, list[str]]:
        """An upload of this file that was cut off, and the MD5 of its parts in their order."""
        uploads = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=key).get("Uploads", ())
        upload = next((entry["UploadId"] for entry in uploads if entry["Key"] == key), None)
        if upload is None:
            return None, []
        return upload, [part["ETag"].strip('"') for part in self._parts(key, upload)]

    def _parts(self, key: str, upload: str) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("list_parts").paginate(Bucket=self._bucket, Key=key, UploadId=upload)
        for page in pages:
            yield from page.get("Parts", ())

    def _recorded(self, key: str) -> Written | None:
        """What is there, as it was recorded when it was sent."""
        entries = self._client.list_objects_v2(Bucket=self._bucket, Prefix=key, MaxKeys=1).get("Contents", ())
        if key not in (entry["Key"] for entry in entries):
            return None
        head = self._client.head_object(Bucket=self._bucket, Key=key)
        return Written(bytes=head["ContentLength"], sha256=head["Metadata"].get("sha256", ""))

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        """Turns the client's errors into one of ours, of one line."""
        try:
            yield
        except self._errors as error:
            raise ObjectStoreError(" ".join(str(error).split())) from error


class Uploads:
    """Sends checkpoints in a thread of its own; where several wait, only the newest goes.

    sending: the folder that is on its way, which must stay until it is there. One that waits is the newest of all.
    """

    def __init__(self, remote: Remote, note: Callable[[str], None]) -> None:
        self._remote, self._note = remote, note
        self._wake, self._next, self._closing = threading.Condition(), None, False
        self.sending: Path | None = None
        self._thread = threading.Thread(target=self._run, name="uploads", daemon=True)
        self._thread.start()

    def offer(self, folder: Path, sealed: Manifest) -> None:
        """This checkpoint is the newest."""
        with self._wake:
            self._next = (folder, sealed)
            self._wake.notify()

    def finish(self, seconds: float | None = None) -> bool:
        """Waits until the newest checkpoint is uploaded or has failed, or the seconds are over; returns whether it is
        uploaded. No checkpoint is accepted from now on."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._next is not None or self._closing)
                if self._next is None:
                    return
                (folder, sealed), self._next = self._next, None
                self.sending = folder
            try:
                self._remote.upload(folder, sealed)
            except (ObjectStoreError, OSError) as why:
                self._note(f"{folder.name} is not uploaded: {why}")
            except Exception as why:  # without this thread no later one would be sent, silently
                self._note(f"{folder.name} is not uploaded: {type(why).__name__}: {why}")
            self.sending = None


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(PART_BYTES):
            yield data


def md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def in_header(digest: bytes) -> str:
    """As the Content-MD5 header has it."""
    return base64.b64encode(digest).decode()
