"""Which processes belong to a node, found from /proc alone: a killed `up` leaves no list of what it had started."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.local.errors import LocalError

STOP_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """A row of /proc. session: the process id of its session's leader."""

    pid: int
    parent: int
    session: int
    command: str
    environment: bytes
    network: tuple[int, int] | None

    @property
    def shown(self) -> str:
        """Its command, fit for one line."""
        return " ".join(self.command.split())[:100]


def belonging(place: Path, leaders: Iterable[int], networks: Iterable[Path]) -> list[Process]:
    """The processes of the nodes below a folder, and all their descendants.

    leaders: processes whose sessions are the nodes' (see `recorded`). networks: named network namespaces of machines.
    """
    start = re.compile(rf"(sshd -D -e -f |--directory=){re.escape(str(place))}/")  # not who reads a log or a key there
    mark = f"GPUFLEET_NODE={place}/".encode()
    inside = {(found.st_dev, found.st_ino) for found in map(_stat, networks) if found}
    sessions, table = set(leaders), _table()
    for process in table.values():
        if process.pid in sessions and not start.search(process.command):
            sessions.discard(process.pid)  # the number was given to somebody else since
    ours = {
        p.pid
        for p in table.values()
        if p.session in sessions or p.network in inside or start.search(p.command) or _carries(p.environment, mark)
    }
    while more := {p.pid for p in table.values() if p.parent in ours} - ours:
        ours |= more
    return [table[pid] for pid in sorted(ours - _self_and_ancestors(table))]


def is_running(place: Path, pid: int) -> bool:
    """True if the process is alive and is the server (or the runner) that was started for this folder."""
    return any(p.pid == pid for p in belonging(place, [], []))


def recorded(file: Path) -> int | None:
    """The process id in a file, if it was written since this computer started: before, it meant somebody else."""
    with suppress(FileNotFoundError, ValueError):
        return int(file.read_text()) if file.stat().st_mtime >= _started() else None
    return None


def end(find: Callable[[], list[Process]]) -> None:
    """Ends what `find` finds: politely, then at once. Raises LocalError when something will not go.

    Inside a machine systemd does the polite part, once nspawn is asked: its processes are only waited for.
    """
    here = _network(os.getpid())
    for process in find():
        if process.network in (here, None):
            _signal(process.pid, signal.SIGTERM)
    if _gone(find, STOP_SECONDS):
        return
    for process in find():
        _signal(process.pid, signal.SIGKILL)
    if not _gone(find, STOP_SECONDS):
        raise LocalError(f"cannot end process {', '.join(f'{p.pid} ({p.command})' for p in find())}")


def _gone(find: Callable[[], list[Process]], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while find():
        if time.monotonic() > limit:
            return False
        time.sleep(0.03)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _started() -> float:
    """Seconds since the epoch at which this computer started."""
    lines = Path("/proc/stat").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("btime "))


def _table() -> dict[int, Process]:
    """Every living process that we may look at; zombies are dead already."""
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and (process := _process(int(entry.name))):
            found[process.pid] = process
    return found


def _process(pid: int) -> Process | None:
    base = Path(f"/proc/{pid}")
    try:
        state, parent, _, session = (base / "stat").read_text().rpartition(")")[2].split()[:4]
        command = (base / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if state in "ZX":
        return None
    environment = b""
    with suppress(OSError):  # another user's
        environment = (base / "environ").read_bytes()
    return Process(
        pid=pid,
        parent=int(parent),
        session=int(session),
        command=command,
        environment=environment,
        network=_network(pid),
    )


def _network(pid: int) -> tuple[int, int] | None:
    found = _stat(Path(f"/proc/{pid}/ns/net"))
    return (found.st_dev, found.st_ino) if found else None


def _stat(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        return path.stat()
    return None


def _carries(environment: bytes, mark: bytes) -> bool:
    return environment.startswith(mark) or b"\0" + mark in environment


def _self_and_ancestors(table: dict[int, Process]) -> set[int]:
    """A person may call us from inside a node: that does not make us a part of it."""
    pid, found = os.getpid(), set[int]()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid].parent
    return found
