"""The failures of a round: which rank failed first, with which exit code and error, and the logs of all ranks."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch.distributed.elastic.multiprocessing import LogsDest, LogsSpecs, ProcessFailure

from training import strict
from training.elastic.heartbeat import BEAT_FILE
from training.elastic.system import CLOCK, Clock, host_name
from training.elastic.worker import ERROR_FILE

LAST_LINES = 12
END_BYTES = 2**16  # of a log that are looked at
NOTE_BYTES = 2**16  # of a rank's error
LOST_PEER = re.compile(r"Connection (closed|reset) by peer|Broken pipe")  # gloo's words for the end of another rank
# NCCL's record of the last collectives, written beside the log of a rank that gives its peers up (torch 2.15 names).
FLIGHT_RECORDER = {"TORCH_FR_BUFFER_SIZE": "20000", "TORCH_FR_DUMP_ON_TIMEOUT": "1"}
FLIGHT_FILE = "TORCH_FR_DUMP_TEMP_FILE"
SAME_MOMENT_SECONDS = 5  # later failures are ranks that the agent ended itself


def own_folder(logs: Path, clock: Clock = CLOCK) -> Path:
    """Makes a folder for this start of a launcher: HOST-START, with a number behind it where that is taken.

    By the time and not by the process: in a container every start has the same host name and pid, and `logs` stays.
    """
    logs.mkdir(parents=True, exist_ok=True)
    name, number = f"{host_name()}-{clock.now():%Y%m%dT%H%M%S}", 1
    while True:
        folder = logs / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


class Logs(LogsSpecs):
    """Standard error of every rank of every round in its own file, `<folder>/round-N/rank-R.log`.

    Standard output is left alone: rank 0 prints to it. file_of: the files of the current round by global rank.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._round = -1
        self.file_of: dict[int, Path] = {}

    @property
    def root_log_dir(self) -> str:
        return str(self._root_log_dir)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        self._round += 1
        folder = Path(self.root_log_dir) / f"round-{self._round}"
        folder.mkdir(parents=True)
        ranks = {local: int(env["RANK"]) for local, env in envs.items()}
        self.file_of = {rank: folder / f"rank-{rank}.log" for rank in ranks.values()}
        for local, rank in ranks.items():
            envs[local][ERROR_FILE] = str(error_file(self.file_of[rank]))
            envs[local][BEAT_FILE] = str(beat_file(self.file_of[rank]))
            envs[local] |= {**FLIGHT_RECORDER, FLIGHT_FILE: str(folder / "flight-of-rank-")}
        return LogsDest(
            stdouts=dict.fromkeys(ranks, ""),
            stderrs={local: str(self.file_of[rank]) for local, rank in ranks.items()},
            error_files=dict.fromkeys(ranks, os.devnull),
        )


def error_file(log: Path) -> Path:
    """Where the rank of this log writes the error that ends it."""
    return log.with_suffix(".error.json")


def beat_file(log: Path) -> Path:
    """The heartbeat file of the rank of this log."""
    return log.with_suffix(".beat")


@dataclass(frozen=True)
class RankFailure:
    """A rank that ended a round. code: its exit code, negative for a signal. error: the exception that ended it, if one
    did, and when (s since 1970, else 0)."""

    rank: int
    code: int
    log: Path
    error: str = ""
    time: float = 0.0

    def line(self) -> str:
        """One line: the rank, its exit code or signal, and its error."""
        if self.code < 0:
            return f"rank {self.rank} was killed by {signal.Signals(-self.code).name}"
        error = self.error or "".join(self._said()[-1:])
        error = "lost its connection to another rank" if LOST_PEER.search(error) else error
        return f"rank {self.rank} ended with exit code {self.code}" + (f": {error}" if error else "")

    def full(self) -> str:
        """The line, then the last lines of the rank's standard error and where the rest is."""
        return "\n  ".join([self.line(), *self._said()[-LAST_LINES:], f"(all of it: {self.log})"])

    def _said(self) -> list[str]:
        with strict.regular(self.log) as file:
            file.seek(max(0, strict.size(file) - END_BYTES))
            text = file.read(END_BYTES).decode(errors="replace")
        return [line for line in text.splitlines() if line.strip()]


def first_failure(failures: Mapping[int, ProcessFailure], logs: Logs) -> RankFailure:
    """The failure that caused the others: a rank that was killed, or left without an error, before ranks that raised
    one (the earliest first), and none that fell only because the agent ended the round."""
    start = min(failure.timestamp for failure in failures.values())
    candidates = [_failure(rank, failure.exitcode, logs.file_of[rank]) for rank, failure in failures.items()]

    def suspicion(failure: RankFailure) -> tuple[bool, bool, float, int]:
        late = failures[failure.rank].timestamp > start + SAME_MOMENT_SECONDS
        return late, failure.code >= 0, failure.time, failure.rank

    return min(candidates, key=suspicion)


def _failure(rank: int, code: int, log: Path) -> RankFailure:
    """With what the rank noted; nothing where it had no time for it, or no room on its disk."""
    try:
        with strict.regular(error_file(log)) as file:
            note = strict.document(file.read(NOTE_BYTES))
        error, time = note["error"], note["time"]
    except (OSError, ValueError, TypeError, LookupError):
        return RankFailure(rank, code, log)
    sound = isinstance(error, str) and strict.number(time)
    return RankFailure(rank, code, log, error, time) if sound else RankFailure(rank, code, log)
