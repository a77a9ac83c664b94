"""How a launch ends: its exit codes, the exception that carries code and message, and the exit itself."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

EXIT_FAILED = 1
EXIT_BAD_JOB = 2
EXIT_PREEMPTED = 75  # EX_TEMPFAIL of sysexits.h: start it again and it goes on


class LaunchExitError(SystemExit):
    """The launch is over, for the reason a person reads. A SystemExit, so that no `except Exception` below takes it."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code
        self.message = message


def say(line: str) -> None:
    """A line to the person, on standard error."""
    try:
        print(f"launch: {line}", file=sys.stderr, flush=True)
    except OSError:  # the person is gone, or the disk of the log is full: the job has to save and end all the same
        return


def leave(exit_code: int) -> NoReturn:
    """End this process without the interpreter's own end.

    A thread of torch tells the store again and again that this node is there. CPython unwinds a thread that comes back
    from C++ while the interpreter ends, which C++ answers with SIGABRT: the exit code would be lost.
    """
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(exit_code)
