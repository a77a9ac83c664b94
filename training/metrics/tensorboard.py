"""A run's figures as TensorBoard's events: one event a report, where torch's writer makes one of each figure."""
# pyright: reportAttributeAccessIssue=false
# (the names of protobuf's modules are made when they are imported)

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter


class Board:
    """An event file in a folder. done: the step this start goes on from; TensorBoard hides what earlier starts wrote
    about later ones."""

    def __init__(self, folder: Path, done: int) -> None:
        self._file = EventFileWriter(str(folder))
        if done:
            self._write(done + 1, session_log=SessionLog(status=SessionLog.START))

    def plot(self, step: int, values: Mapping[str, float]) -> None:
        """The figures of a step, by name."""
        points = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(step, summary=Summary(value=points))

    def close(self) -> None:
        self._file.close()

    def _write(self, step: int, **what: object) -> None:
        self._file.add_event(Event(wall_time=time.time(), step=step, **what))
