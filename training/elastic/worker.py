"""One rank, started by the launcher: `python -m training.elastic.worker LAUNCHER_PID run JOB …`.

Three things come before everything else, torch included. The process is killed when its launcher ends, however that
happens. A SIGTERM is remembered from the first moment, so that a stop during the imports still ends in a checkpoint of
all ranks. And an error is recorded with its time, so that the launcher can tell the rank that failed first from those
that lost their connection to it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType

from training.elastic.notices import Signals
from training.elastic.system import CLOCK

ERROR_FILE = "GPUFLEET_ERROR_FILE"
PROGRAM = "training.__main__"  # imported by name, late: see above
PR_SET_PDEATHSIG = 1  # prctl(2), Linux


def die_with(launcher: int) -> None:
    """Have the kernel SIGKILL this process when the launcher's main thread, which started it, is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != launcher:  # it ended before the prctl
        sys.exit(f"the launcher {launcher} is gone")


def note_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An excepthook: `{"time", "error"}` into the file that the launcher reads, where there is room for it, then the
    traceback as always."""
    line = traceback.format_exception_only(error)[-1].partition("\n")[0]
    with suppress(OSError):
        Path(os.environ[ERROR_FILE]).write_text(
            json.dumps({"time": CLOCK.now().timestamp(), "error": line}), encoding="utf-8"
        )
    sys.__excepthook__(kind, error, trace)


def main() -> int:
    """Settle the process, then be `python -m training run …`."""
    die_with(int(sys.argv[1]))
    sys.excepthook = note_error
    faulthandler.register(signal.SIGUSR1)  # for a silent rank's stacks; needs no interpreter lock
    Signals.of_process()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # the launcher blocked it until a handler is installed
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # standard input belongs to the launcher

    try:
        return import_module(PROGRAM).main(sys.argv[2:])
    finally:  # Python restores the default handlers while it exits: a SIGTERM would then replace the exit code
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
