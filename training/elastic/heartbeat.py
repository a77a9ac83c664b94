"""Signs of life of a rank, for a watcher outside the process: a file whose time is the last one.

By the clock that nobody sets, which all processes of a node share: neither a node whose time is put right nor a file
server with a time of its own makes a rank look silent.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

BEAT_FILE = "GPUFLEET_BEAT_FILE"  # set by the launcher for each rank
BEAT_SECONDS = 0.5  # on a shared file system a touch may cost a millisecond: not at every step


class Heartbeat:
    """Touches the file that the launcher watches. Does nothing where nobody watches."""

    def __init__(self) -> None:
        name = os.environ.get(BEAT_FILE)
        self._file = None if name is None else Path(name)
        self._open: int | None = None
        self._next = 0.0

    def beat(self) -> None:
        """This rank is alive and does something."""
        if self._file is None or (now := time.monotonic()) < self._next:
            return
        if self._open is None:
            self._open = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        os.utime(self._open, (now, now))
        self._next = now + BEAT_SECONDS

    def rest(self) -> None:
        """What follows may take long (a last upload): nobody should watch until the next beat."""
        if self._file is not None and self._open is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._open)
            self._open, self._next = None, 0.0


def silent_seconds(file: Path) -> float:
    """Since the last beat; 0 where none is expected."""
    try:
        return max(0.0, time.monotonic() - file.stat().st_mtime)
    except FileNotFoundError:
        return 0.0
