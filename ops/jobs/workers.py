"""The launchers of one job, one on each node, followed together until all have ended."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from pathlib import Path
from queue import Empty, Queue
from typing import IO

from infra.handover import Handover, Node
from infra.printable import one_line
from ops import untrusted
from ops.engine import processes
from ops.engine.processes import Process
from ops.jobs.base import Event
from ops.nodes import ssh
from ops.untrusted import LINE_BYTES, lines

QUEUED_EVENTS = 1000  # that are read and not yet shown; a node that sends more has to wait
DRAIN_SECONDS = 0.1
OUTPUT_LINES = 100  # of a worker's own that are kept for the message of its failure
STOP_SECONDS = 120.0  # a step, a checkpoint, and the launcher's own patience with its workers


@dataclass
class Worker:
    """The launcher on one node, behind an SSH connection that is also its lease: closed, it stops with a checkpoint."""

    node: Node
    process: Process
    output: deque[str] = field(default_factory=partial(deque, maxlen=OUTPUT_LINES))

    @classmethod
    def start(cls, handover: Handover, node: Node, remote: str) -> Worker:
        return cls(node, processes.leased(ssh.ssh(handover, node, remote), errors=True))

    def read(self, events: Queue[tuple[Worker, Event | None]]) -> None:
        """Passes on the node's events; other lines are stored for the error message. Ends with a None."""
        assert self.process.stdout is not None
        for line in lines(_chunks(self.process.stdout)):
            if event := untrusted.event(line):
                events.put((self, event))
            else:
                self.output.append(as_text(line))
        events.put((self, None))

    def listen(self) -> None:
        assert self.process.stderr is not None
        self.output.extend(map(as_text, lines(_chunks(self.process.stderr))))

    def release(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


def as_text(line: bytes) -> str:
    """A line that a job printed itself, fit for a terminal."""
    return one_line(line.decode(errors="replace")).rstrip()


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """What a stream sends, as it arrives."""
    assert isinstance(stream, BufferedReader)
    return iter(lambda: stream.read1(LINE_BYTES), b"")


@dataclass
class Workers:
    """All launchers of one job. reporter: the one that sent the result, None as long as none did."""

    members: Sequence[Worker] = ()
    reporter: Worker | None = None
    _events: Queue[tuple[Worker, Event | None]] = field(default_factory=partial(Queue, maxsize=QUEUED_EVENTS))
    _readers: list[threading.Thread] = field(default_factory=list)

    @property
    def codes(self) -> list[int]:
        """Their exit codes, once all have ended."""
        return [worker.process.returncode for worker in self.members]

    def complaints(self) -> list[str]:
        """The last lines of every worker that failed, or at least its exit code."""
        failed = [worker for worker in self.members if worker.process.returncode]
        lines = [f"{worker.node.name}: {line}" for worker in failed for line in list(worker.output)[-3:] if line]
        return lines or [f"{worker.node.name}: ended with code {worker.process.returncode}" for worker in failed]

    def follow(self, events_file: Path, on_event: Callable[[Event], None]) -> None:
        """Reads all workers until the last has ended; each event goes to the file and to `on_event`."""
        for worker in self.members:
            self._readers += [
                threading.Thread(target=worker.read, args=(self._events,)),
                threading.Thread(target=worker.listen),
            ]
        for reader in self._readers:
            reader.start()
        unfinished = len(self.members)
        with events_file.open("a") as record:
            while unfinished:
                worker, event = self._events.get()
                if event is None:
                    unfinished -= 1
                    continue
                record.write(json.dumps(event) + "\n")
                record.flush()
                on_event(event)
                if event["event"] == "result":
                    self.reporter = worker

    def stop(self) -> None:
        """Gives all leases back and waits for the checkpoints. Safe to call again, and of workers that have ended."""
        if not self._readers:
            return
        drain = threading.Thread(target=self._drain)
        drain.start()
        end(self.members)
        for thread in (*self._readers, drain):
            thread.join()

    def _drain(self) -> None:
        """Takes what still comes, so that no worker waits for its reader while it saves."""
        while any(reader.is_alive() for reader in self._readers):
            with suppress(Empty):
                self._events.get(timeout=DRAIN_SECONDS)


def end(workers: Sequence[Worker]) -> None:
    """Gives all leases back and waits; after the patience, or at a second Ctrl-C, the connection is cut."""
    for worker in workers:
        worker.release()
    for worker in workers:
        processes.wait_or_kill(worker.process, STOP_SECONDS)
