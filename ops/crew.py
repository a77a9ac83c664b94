"""The launchers of one job, one on each node, followed together to their common end."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

from infra.handover import Handover, Node
from ops import nodes

STOP_SECONDS = 120.0  # a step, a checkpoint, and the launcher's own patience with its workers

Event = dict[str, Any]


def as_event(line: str) -> Event | None:
    """The event that a launcher's line is; None for one of the job's own, or that was cut off."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if "event" in found else None


@dataclass
class Worker:
    """The launcher on one node, behind an SSH connection that is also its lease: closed, it stops with a checkpoint."""

    node: Node
    process: subprocess.Popen[str]
    words: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, told: Handover, node: Node, remote: str) -> Worker:
        process = subprocess.Popen(
            nodes.ssh(told, node, remote),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches us alone: we give the leases back
        )
        return cls(node, process)

    def read(self, events: Queue[tuple[Worker, Event | None]]) -> None:
        """Passes on the node's events; what is no event is kept for the message of a failure. Ends with a None."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := as_event(line):
                events.put((self, found))
            else:
                self.words.append(line.rstrip())
        events.put((self, None))

    def listen(self) -> None:
        assert self.process.stderr is not None
        self.words.extend(line.rstrip() for line in self.process.stderr)

    def release(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


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
        said = [f"{worker.node.name}: {word}" for worker in bad for word in worker.words[-3:] if word]
        return said or [f"{worker.node.name}: ended with code {worker.process.returncode}" for worker in bad]


def follow(crew: Sequence[Worker], events_file: Path, on_event: Callable[[Event], None]) -> Ended:
    """Reads all workers until the last has ended. Ctrl-C gives their leases back and waits for the checkpoint."""
    events: Queue[tuple[Worker, Event | None]] = Queue()
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
        end(crew)
        for thread in threads:
            thread.join()
    return Ended(crew, reporter)


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
