"""Leftover processes of a killed deployment: a plugin may still be creating a resource without its engine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ops.clock import REAL, Clock

PATIENCE_SECONDS = 3.0  # for its last call; then a plugin without its engine ends by itself, or is ended


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def end_session(leader: int, clock: Clock = REAL) -> None:
    """Waits for what a dead engine started, then ends it. leader: the engine's process id (see `processes.run`)."""
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        left = set(_members(leader))
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        limit = clock.monotonic() + PATIENCE_SECONDS
        while left and clock.monotonic() < limit:
            clock.sleep(0.05)
            left = {pid for pid in left if alive(pid)}
        if not left:
            return


def _members(leader: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        if _stat(pid := int(folder.name))[3:4] == [str(leader)] and alive(pid):
            yield pid


def _stat(pid: int) -> list[str]:
    """State, parent, process group, session … of a process (proc(5)); empty for one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []
