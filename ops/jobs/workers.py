"""The launchers of one job, one on each node, followed together to their common end."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

from infra.handover import Handover, Node
from infra.printable import one_line
from ops import untrusted
from ops.nodes import ssh
from ops.untrusted import LINE_BYTES, lines

WAITING = 1000  # events that are read and not yet shown; a node that sends more has to wait
DRAIN_SECONDS = 0.1
LAST_WORDS = 100  # lines of a worker's own that are kept for the message of its failure
STOP_SECONDS = 120.0  # a step, a checkpoint, and the launcher's own patience with its workers

Event = dict[str, Any]


@dataclass
class Worker:
    """The launcher on one node, behind an SSH connection that is also its lease: closed, it stops with a checkpoint."""

    node: Node
    process: subprocess.Popen[bytes]
    words: deque[str] = field(default_factory=partial(deque, maxlen=LAST_WORDS))

    @classmethod
    def start(cls, told: Handover, node: Node, remote: str) -> Worker:
        process = subprocess.Popen(
            ssh.ssh(told, node, remote),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches us alone: we give the leases back
        )
        return cls(node, process)

    def read(self, events: Queue[tuple[Worker, Event | None]]) -> None:
        """Passes on the node's events; what is no event is kept for the message of a failure. Ends with a None."""
        assert self.process.stdout is not None
        for line in lines(_chunks(self.process.stdout)):
            if found := untrusted.event(line):
                events.put((self, found))
            else:
                self.words.append(as_words(line))
        events.put((self, None))

    def listen(self) -> None:
        assert self.process.stderr is not None
        self.words.extend(map(as_words, lines(_chunks(self.process.stderr))))

    def release(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


def as_words(line: bytes) -> str:
    """A line of a job's own."""
    return one_line(line.decode(errors="replace")).rstrip()


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """What comes, when it comes."""
    assert isinstance(stream, BufferedReader)
    return iter(lambda: stream.read1(LINE_BYTES), b"")


@dataclass(frozen=True)
class Ended:
    """How it went: `reporter` is the worker that told the result, None when none did."""

    crew: Sequence[Worker]
    reporter: Worker | None

    @property
    def codes(self) -> list[int]:
        return [worker.process.returncode for worker in self.crew]

    def complaints(self) -> list[str]:
        """The last words of every worker that failed, or at least its exit code."""
        bad = [worker for worker in self.crew if worker.process.returncode]
        said = [f"{worker.node.name}: {word}" for worker in bad for word in list(worker.words)[-3:] if word]
        return said or [f"{worker.node.name}: ended with code {worker.process.returncode}" for worker in bad]


def follow(crew: Sequence[Worker], events_file: Path, on_event: Callable[[Event], None]) -> Ended:
    """Reads all workers until the last has ended. Ctrl-C gives their leases back and waits for the checkpoint."""
    events: Queue[tuple[Worker, Event | None]] = Queue(maxsize=WAITING)
    threads = [threading.Thread(target=worker.read, args=(events,)) for worker in crew]
    threads += [threading.Thread(target=worker.listen) for worker in crew]
    for thread in threads:
        thread.start()
    reporter, open_ends = None, len(crew)
    try:
        with events_file.open("a") as record:
            while open_ends:
                worker, event = events.get()
                if event is None:
                    open_ends -= 1
                    continue
                record.write(json.dumps(event) + "\n")
                record.flush()
                on_event(event)
                if event["event"] == "result":
                    reporter = worker
    except KeyboardInterrupt:
        on_event({"event": "stopping"})
    finally:
        rest = threading.Thread(target=_drain, args=(events, threads))
        rest.start()
        end(crew)
        for thread in (*threads, rest):
            thread.join()
    return Ended(crew, reporter)


def _drain(events: Queue[tuple[Worker, Event | None]], readers: Sequence[threading.Thread]) -> None:
    """Takes what still comes, so that no worker waits for its reader while it saves."""
    while any(reader.is_alive() for reader in readers):
        with suppress(Empty):
            events.get(timeout=DRAIN_SECONDS)


def end(crew: Sequence[Worker]) -> None:
    """Gives all leases back and waits; after the patience, or at a second Ctrl-C, the connection is cut."""
    for worker in crew:
        worker.release()
    for worker in crew:
        try:
            worker.process.wait(STOP_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            worker.process.kill()
            worker.process.wait()
