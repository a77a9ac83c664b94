"""What a node needs to configure itself: playbooks, training package and lock, as one object of the stack's own bucket.

The archive's name is its content's hash: a node asks for exactly the one that it was started with.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pulumi import ComponentResource, FileAsset, Input, Output, ResourceOptions
from pulumi_aws import s3

PROJECT = Path(__file__).resolve().parents[3]
PARTS = ("playbooks", "training", "requirements.txt")


@dataclass(frozen=True, kw_only=True)
class BundleArgs:
    """What the bundle needs. bucket: where it goes. folder: where the archive is kept on this computer."""

    bucket: Input[str]
    folder: Path


class Bundle(ComponentResource):
    """bucket, key: where the object is. sha256: of its content."""

    bucket: Input[str]
    key: Output[str]
    sha256: str

    def __init__(self, name: str, args: BundleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Bundle", name, {}, opts)
        content = packed(PROJECT)
        self.sha256, self.bucket = sha256(content).hexdigest(), args.bucket
        uploaded = s3.BucketObjectv2(
            f"{name}-object",
            bucket=args.bucket,
            key=f"bundles/{self.sha256}.tar",
            source=FileAsset(str(_kept(content, args.folder / f"{self.sha256}.tar"))),
            content_type="application/x-tar",
            opts=ResourceOptions(parent=self),
        )
        self.key = uploaded.key
        self.register_outputs({"key": self.key})


def packed(project: Path) -> bytes:
    """A tar archive that is the same for the same files, whoever packs it and when."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in _files(project):
            entry = tarfile.TarInfo(file.relative_to(project).as_posix())
            content = file.read_bytes()
            entry.size, entry.mode = len(content), 0o755 if file.stat().st_mode & 0o100 else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def _files(project: Path) -> Iterator[Path]:
    for part in PARTS:
        place = project / part
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def _kept(content: bytes, file: Path) -> Path:
    """The engine reads the archive from a file; one of this name has this content already."""
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(file)
    return file
