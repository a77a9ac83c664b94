"""What a login of this node may do in buckets: the table of grants, which root alone writes.

Two kinds of file hold a grant, each with {"places": [{"bucket", "prefix", "mode"}]}: LOGIN.json in the folder `lasting`
holds until it is removed; LOGIN/NAME.json in the folder `running` belongs to a run and holds only while whoever started
the run has the file locked (flock(2)), so that the kernel ends it with that process. A login has the places of all its
files together.

mode: `read` lists and reads below the prefix; `write` also writes and removes there; `upload` also lists the bucket's
unfinished multipart uploads, which shows their names beyond the prefix, since S3 knows no narrower right for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import stat
from dataclasses import dataclass
from pathlib import Path

MODES = ("read", "write", "upload")
LOGIN = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# No character that a policy takes for a pattern or a variable, and always whole parts of a key's path.
PREFIX = re.compile(r"([A-Za-z0-9_=+@:,-][A-Za-z0-9._=+@:,-]*/)+")
MOST_BYTES, MOST_RUNS = 16 * 1024, 64


class RefusedError(Exception):
    """Why a login gets nothing, in one line that it may read."""


@dataclass(frozen=True)
class Place:
    bucket: str
    prefix: str  # with its last `/`
    mode: str

    def __post_init__(self) -> None:
        if not BUCKET.fullmatch(self.bucket):
            raise RefusedError(f"{self.bucket!r} is no name of a bucket")
        if not PREFIX.fullmatch(self.prefix) or len(self.prefix) > 512:
            raise RefusedError(
                f"{self.prefix!r} must be a prefix such as `runs/a/`: letters, digits and . _ = + @ : , -"
            )
        if self.mode not in MODES:
            raise RefusedError(f"{self.mode!r} must be one of {', '.join(MODES)}")


@dataclass(frozen=True)
class Grant:
    """login: whom the session is for. places: at least one, in a fixed order, so that equal grants are equal."""

    login: str
    places: tuple[Place, ...]


def places(text: str | bytes) -> list[Place]:
    """Raises RefusedError, and ValueError, TypeError or KeyError for what is no grant."""
    return [Place(each["bucket"], each["prefix"], each["mode"]) for each in json.loads(text)["places"]]


def of_uid(uid: int, lasting: Path, running: Path) -> Grant:
    """The grant of a login of this node. Raises RefusedError."""
    try:
        login = pwd.getpwuid(uid).pw_name
    except KeyError:
        raise RefusedError(f"{uid} is no login of this node") from None
    if not LOGIN.fullmatch(login):
        raise RefusedError(f"{login!r} is no login that storage is granted to")
    runs = sorted((running / login).glob("*.json"))[:MOST_RUNS]
    granted: set[Place] = set()
    for file, lasts in [(lasting / f"{login}.json", True), *((run, False) for run in runs)]:
        try:
            granted.update(_read(file, lasts=lasts))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RefusedError(f"{file} cannot be read as a grant: {type(error).__name__}") from error
    if not granted:
        raise RefusedError(f"no storage is granted to {login}")
    return Grant(login, tuple(sorted(granted, key=lambda place: (place.bucket, place.prefix, place.mode))))


def _read(file: Path, *, lasts: bool) -> list[Place]:
    """The places of one file, none where its run is over."""
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
        about = os.fstat(opened.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise RefusedError(f"{file} is not a file that root alone writes")
        if not lasts and not is_locked(opened.fileno()):
            return []
        return places(opened.read(MOST_BYTES))


def is_locked(descriptor: int) -> bool:
    """Whether somebody else holds an open file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
