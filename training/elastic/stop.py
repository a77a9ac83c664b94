"""The stop flag that the step loop polls."""

from __future__ import annotations

from pathlib import Path

from training.elastic.notices import FileSwitch, Signals, Source


class Stop:
    """Whether any source has requested this process to save and leave.

        stop = Stop(out=job.out)
        while step < job.steps:
            ...
            if agree(stop.requested()):     # MAX over the ranks: all save the same step
                ...save; raise SystemExit(75)

    The first `Stop` of a process installs the SIGTERM and SIGINT handlers; later ones share them, so a signal that
    arrived while the process was still importing is not lost. out: the run's folder, whose file `STOP` is a person's
    switch. sources: further ones, such as a cloud's notice.
    """

    def __init__(self, *sources: Source, out: Path | None = None) -> None:
        switch = () if out is None else (FileSwitch(Path(out) / "STOP"),)
        self._sources: tuple[Source, ...] = (Signals.of_process(), *switch, *sources)

    def requested(self) -> bool:
        """Whether to save and leave; microseconds, never raises."""
        return self.reason() is not None

    def reason(self) -> str | None:
        """Which source, for the log; None without a request."""
        return next((reason for source in self._sources if (reason := source.requested()) is not None), None)
