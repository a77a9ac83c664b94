"""Writes checkpoints in a thread, one at a time: the step loop waits for a copy, not for the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Writer:
    """One save in flight. An error of the save is kept until `wait` raises it."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.cpu_seconds = 0.0

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Runs `work` beside the loop, after the save before it."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name=name)
        self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # raised again by wait, in the loop's thread
            self._error = error
        self.cpu_seconds = time.thread_time()

    def busy(self, patience_seconds: float = 0.0) -> bool:
        """Whether the save in flight is not durable yet, once it was waited for so long."""
        if self._thread is None:
            return False
        self._thread.join(patience_seconds)
        return self._thread.is_alive()

    def wait(self) -> bool:
        """Returns when the save in flight is durable, whether there was one; raises its error if it failed."""
        if self._thread is None:
            return False
        self._thread.join()
        self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return True
