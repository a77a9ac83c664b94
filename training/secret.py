"""Keys in files: of a rendezvous store, of the manifests of checkpoints. Other users must not be able to read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LEAST, MOST = 32, 256  # characters


class KeyFileError(OSError):
    """The file is of another login, readable by others, or holds no key; the message says what to do."""


def key_in(file: Path) -> bytes:
    """The key in a file of this user that nobody else can read. Raises KeyFileError, or OSError as opening does."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise KeyFileError(f"{file} must be a file of this login, since it holds a key")
        if about.st_mode & 0o077:
            raise KeyFileError(f"others can read {file}, which holds a key: `chmod 600 {file}`")
        return checked(os.read(descriptor, MOST + 2), str(file))
    finally:
        os.close(descriptor)


def checked(text: bytes, where: str) -> bytes:
    """The key without the end of its line; raises KeyFileError where it is too short or too long for one."""
    key = text.strip()
    if not LEAST <= len(key) <= MOST:
        raise KeyFileError(f"{where} must hold a key: {LEAST} to {MOST} characters, such as 64 random hex digits")
    return key
