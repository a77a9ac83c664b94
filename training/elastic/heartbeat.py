"""A rank's heartbeat: a file whose modification time is that of the last beat, watched by the launcher.

Times are those of the monotonic clock, which all processes of a node share: neither a clock that is set nor the clock
of a file server makes a rank look silent.
"""

from __future__ import annotations

import os
from pathlib import Path

from training.elastic.system import CLOCK, Clock

BEAT_FILE = "GPUFLEET_BEAT_FILE"  # set by the launcher for each rank
BEAT_SECONDS = 0.5  # on a shared file system a touch may cost a millisecond: not at every step


class Heartbeat:
    """Touches the file that the launcher watches; does nothing without a launcher."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        name = os.environ.get(BEAT_FILE)
        self._file = None if name is None else Path(name)
        self._open: int | None = None
        self._next = 0.0

    def beat(self) -> None:
        """Called while this rank makes progress."""
        if self._file is None or (now := self._clock.monotonic()) < self._next:
            return
        if self._open is None:
            self._open = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        os.utime(self._open, (now, now))
        self._next = now + BEAT_SECONDS

    def rest(self) -> None:
        """Pauses until the next beat: what follows may take long (a last upload)."""
        if self._file is not None and self._open is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._open)
            self._open, self._next = None, 0.0


def silent_seconds(file: Path, clock: Clock = CLOCK) -> float:
    """Since the last beat; 0 where the rank is not watched."""
    try:
        return max(0.0, clock.monotonic() - file.stat().st_mtime)
    except FileNotFoundError:
        return 0.0
