"""Writes checkpoints in a thread, one at a time: the step loop waits for a copy, not for the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from training.checkpoint.store import Store


class Writer:
    """A store with one save in flight. A save that fails raises its error in the loop, at the next call."""

    def __init__(self, store: Store, durable: Callable[[int], None]) -> None:
        self._store, self._durable = store, durable
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Starts to write tensors that nobody changes before `wait` returned; calls `durable(step)` when it is safe."""
        self.wait()
        self._thread = threading.Thread(target=self._write, args=(step, tensors, about), name=f"checkpoint {step}")
        self._thread.start()

    def _write(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        try:
            self._store.save(step, tensors, about)
            self._durable(step)
        except BaseException as error:  # raised again by wait, in the loop's thread
            self._error = error

    def wait(self) -> None:
        """Returns when the save in flight is durable; raises its error if it failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
