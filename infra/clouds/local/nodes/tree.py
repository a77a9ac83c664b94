"""Writes files into a machine's tree without following links in it.

Root of the machine is root here, and the tree is its own: any folder in it may be a link to a folder of this computer,
any file a link, a pipe or a device. So a path is walked one folder at a time, each opened relative to the one before
and refused where it is a link (openat(2), O_NOFOLLOW), and a file is written aside and renamed over what is there,
which is never opened (rename(2)).
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from infra.clouds.local.nodes.errors import LocalError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ROOT = 0


def write(root: Path, inside: str, text: str, mode: int = 0o644, owner: int = ROOT) -> None:
    """Writes a file atomically, replacing an existing one. Creates missing folders.

    inside: its path in the machine, relative to `root`. owner: uid and gid. Raises LocalError where a folder above it
    is a link, or a folder has its name.
    """
    path = PurePosixPath(inside)
    with folder(root, path.parent) as parent:
        aside = f".{path.name}.{secrets.token_hex(8)}"
        handle = os.open(aside, NEW_FILE, 0o600, dir_fd=parent)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
                os.fchown(handle, owner, owner)
                os.fchmod(handle, mode)
            os.rename(aside, path.name, src_dir_fd=parent, dst_dir_fd=parent)
        except IsADirectoryError:
            os.unlink(aside, dir_fd=parent)
            raise LocalError(f"/{inside} of the machine is a folder: remove it there") from None
        except BaseException:  # also after an interruption, no partial file is left
            os.unlink(aside, dir_fd=parent)
            raise


@contextmanager
def folder(root: Path, inside: PurePosixPath) -> Iterator[int]:
    """The open folder at a path relative to `root`, made (0755, root's) where it is missing. Raises LocalError."""
    handle = os.open(root, FOLDER)
    try:
        for i, part in enumerate(inside.parts, 1):
            above, handle = handle, _enter(handle, part, inside.parts[:i])
            os.close(above)
        yield handle
    finally:
        os.close(handle)


def _enter(above: int, part: str, parts: tuple[str, ...]) -> int:
    if part == "..":
        raise ValueError(f"{'/'.join(parts)} leaves the tree")
    try:
        return os.open(part, FOLDER, dir_fd=above)
    except FileNotFoundError:
        os.mkdir(part, 0o755, dir_fd=above)
        return os.open(part, FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # O_DIRECTORY | O_NOFOLLOW: a link, or no folder
            raise LocalError(f"/{'/'.join(parts)} of the machine is a link or no folder: remove it there") from None
        raise
