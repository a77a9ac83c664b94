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
    """The launch ends, with a message for people. A SystemExit, so that no `except Exception` catches it."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code
        self.message = message


def say(line: str) -> None:
    """Prints a line for people, on standard error."""
    try:
        print(f"launch: {line}", file=sys.stderr, flush=True)
    except OSError:  # the terminal is gone, or the log's disk is full: the job still has to save and end
        return


def leave(exit_code: int) -> NoReturn:
    """End this process without the interpreter's own end.

    A thread of torch keeps reporting to the store that this node is alive. CPython unwinds a thread that comes back
    from C++ while the interpreter ends, which C++ answers with SIGABRT: the exit code would be lost.
    """
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(exit_code)
