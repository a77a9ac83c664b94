"""Relays the standard output of the ranks, and keeps draining it when its reader is gone."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType

STDOUT = 1
LAST_WORDS_SECONDS = 5  # for what a killed rank's own children may still hold open


class Relay:
    """A pipe in place of standard output, while the context lasts.

    When the reader goes (an SSH connection breaks), the ranks must not die of it in the middle of the step: they have
    to save first. So they write to this pipe, which is drained whether anybody listens or not. A terminal stays as it
    is.
    """

    def __enter__(self) -> Relay:
        self._thread: threading.Thread | None = None
        if not os.isatty(STDOUT):
            sys.stdout.flush()
            self._outside = os.dup(STDOUT)
            source, sink = os.pipe()
            os.dup2(sink, STDOUT)
            os.close(sink)
            self._thread = threading.Thread(target=_copy, args=(source, self._outside), name="relay", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            sys.stdout.flush()
            os.dup2(
                self._outside, STDOUT
            )  # closes our end of the pipe: the thread sees its end once the ranks are gone
            self._thread.join(LAST_WORDS_SECONDS)


def _copy(source: int, sink: int) -> None:
    heard = True
    while block := os.read(source, 65536):
        while heard and block:
            try:
                block = block[os.write(sink, block) :]
            except OSError:  # a reader that went, a log on a full disk
                heard = False
