"""How long a process still has, once it was requested to save and leave."""

from __future__ import annotations

import math
import os
from typing import Protocol

from training.elastic.system import CLOCK, Clock

SHUTDOWN = "TRAINING_SHUTDOWN_SECONDS"  # of the environment: so long after a request the launcher kills
SHUTDOWN_SECONDS = 90  # a cloud's notice is two minutes: 90 s to save, the rest to leave
SHARE = 2 / 3  # of that time; in the rest the process ends


class StopRequest(Protocol):
    """A request to save and leave, such as `Stop`."""

    def requested(self) -> bool: ...


class Deadline:
    """The time left since a request to stop came."""

    def __init__(self, request: StopRequest | None, clock: Clock = CLOCK) -> None:
        self._request, self._clock = request, clock
        self._time = SHARE * float(os.environ.get(SHUTDOWN, SHUTDOWN_SECONDS))
        self._end = math.inf

    def requested(self) -> bool:
        """Whether this process is to save and leave."""
        requested = self._request is not None and self._request.requested()
        if requested:
            self.begin()
        return requested

    def begin(self) -> None:
        """Starts the time, at the first call: this process was requested to stop, or its ranks agreed to."""
        self._end = min(self._end, self._clock.monotonic() + self._time)

    def seconds(self) -> float:
        """Seconds left: infinite without a request, below 0 once they are over."""
        self.requested()
        return self._end - self._clock.monotonic()
