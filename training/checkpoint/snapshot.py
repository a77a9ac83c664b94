"""A copy of the training state in CPU memory, made while the next gradients are computed, and the thread that writes
it: the step loop waits for the copy, not for the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor


class Snapshot:
    """Kept buffers in CPU memory, filled from live tensors while the next gradients are computed.

    Only the optimizer's step changes parameters and optimizer state, so their copy may run beside forward and backward
    and must be over before the next step of the optimizer. What changes before it is copied at once: BatchNorm's
    statistics by forward, what PowerSGD keeps by the reduction of gradients.
    """

    def __init__(self, live: Mapping[str, Tensor], at_once: set[str]) -> None:
        self.tensors = {name: buffer_for(tensor) for name, tensor in live.items()}
        self._at_once = at_once
        self._later: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._cuda = any(tensor.is_cuda for tensor in live.values())
        self._stream = torch.cuda.Stream() if self._cuda else None
        self._copied = torch.cuda.Event() if self._cuda else threading.Event()
        if isinstance(self._copied, threading.Event):
            self._copied.set()  # nothing is under way

    def begin(self, live: Mapping[str, Tensor]) -> None:
        """Copies what gradients change, and on a GPU queues the rest behind the work that is already there."""
        now = [name for name in live if name in self._at_once]
        copy([self.tensors[name] for name in now], [live[name] for name in now])
        later = [name for name in live if name not in self._at_once]
        self._later = ([self.tensors[name] for name in later], [live[name] for name in later])
        if isinstance(self._copied, threading.Event):
            self._copied.clear()
            return
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            copy(*self._later)
            self._copied.record(self._stream)

    def complete(self) -> dict[str, Tensor]:
        """For the thread that writes: returns when everything is copied."""
        if isinstance(self._copied, threading.Event):
            try:
                copy(*self._later)
            finally:
                self._copied.set()
        else:
            self._copied.synchronize()
        return self.tensors

    def hold(self) -> None:
        """For the step loop, before the parameters change: waits for the copy; on a GPU the device does."""
        if isinstance(self._copied, threading.Event):
            self._copied.wait()
        else:
            torch.cuda.current_stream().wait_event(self._copied)


def copy(buffers: list[Tensor], live: list[Tensor]) -> None:
    if buffers:
        originals = [tensor.detach() for tensor in live]
        torch._foreach_copy_(buffers, originals, non_blocking=True)  # pyright: ignore[reportPrivateImportUsage]


def buffer_for(tensor: Tensor) -> Tensor:
    """A CPU tensor of the same shape and layout, its pages touched; page-locked where the copy comes from a GPU."""
    return torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda, requires_grad=False).zero_()


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
