"""Interruption: one flag that says "save and leave", whoever raised it.

The loop asks `Stop.requested()` in every loop (train, eval, warm-up) and lets all ranks agree (MAX), so that all of
them save the same step. The periodic checkpoint is the guarantee; an interruption noticed in time only saves the steps
since then.
"""

from __future__ import annotations

from training.interrupt.leaving import SHUTDOWN, SHUTDOWN_SECONDS, Leaving, StopRequest
from training.interrupt.sources import FileSwitch, Signals, Source
from training.interrupt.stop import Stop

__all__ = ["SHUTDOWN", "SHUTDOWN_SECONDS", "FileSwitch", "Leaving", "Signals", "Source", "Stop", "StopRequest"]
