"""Whether a process is to save and leave, and how long it still has for it."""

from __future__ import annotations

import math
import os
import time
from typing import Protocol

SHUTDOWN = "TRAINING_SHUTDOWN_SECONDS"  # of the environment: so long after a request the launcher kills
SHUTDOWN_SECONDS = 90  # a cloud's notice is two minutes: 90 s to save, the rest to leave
SHARE = 2 / 3  # of that time; in the rest the process ends


class StopRequest(Protocol):
    """Whether this process was asked to save and leave, such as `Stop`."""

    def requested(self) -> bool: ...


class Deadline:
    """A request, and the time that runs since it came; without one nobody asks."""

    def __init__(self, request: StopRequest | None) -> None:
        self._request = request
        self._time = SHARE * float(os.environ.get(SHUTDOWN, SHUTDOWN_SECONDS))
        self._end = math.inf

    def requested(self) -> bool:
        """Whether this process is to save and leave."""
        requested = self._request is not None and self._request.requested()
        if requested:
            self.begin()
        return requested

    def begin(self) -> None:
        """The time runs from the first call on: this process was asked, or its ranks agreed with one that was."""
        self._end = min(self._end, time.monotonic() + self._time)

    def seconds(self) -> float:
        """Still so many, without end while nobody asks; below 0 once they are over."""
        self.requested()
        return self._end - time.monotonic()
