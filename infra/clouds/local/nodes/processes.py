"""Processes of this computer: run, started, waited for; and a node's processes, listed from /proc.

A killed `up` leaves no list of what it started. All effects on this computer but its files go through this module.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.local.nodes.errors import LocalError

STOP_SECONDS = 5.0
PAUSE_SECONDS = 0.03

Completed = subprocess.CompletedProcess[str]
Started = subprocess.Popen[bytes]


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
        """Its command in one line."""
        return " ".join(self.command.split())[:100]


def run(*command: object) -> str:
    """Runs a program and returns its output. Raises LocalError with its last line."""
    answer = attempt(*command)
    if answer.returncode:
        lines = (answer.stderr.strip() or answer.stdout.strip() or f"exit code {answer.returncode}").splitlines()
        raise LocalError(f"`{' '.join(map(str, command))}` failed: {lines[-1]}")
    return answer.stdout


def attempt(*command: object) -> Completed:
    """Runs a program that may fail."""
    arguments = [str(argument) for argument in command]
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def start(command: Sequence[object], env: Mapping[str, str], log: Path) -> Started:
    """Starts a server in a session of its own, without any of our files open: it outlives the engine."""
    with log.open("w") as output:
        return subprocess.Popen(
            [str(argument) for argument in command],
            cwd="/",
            env=dict(env),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def is_free(address: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def answers(address: str, port: int, seconds: float = 2.0) -> bool:
    """Whether an SSH server sends its banner there."""
    try:
        with socket.create_connection((address, port), seconds) as connection:
            connection.settimeout(seconds)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def until(done: Callable[[], object], seconds: float, pause: float = PAUSE_SECONDS) -> bool:
    """Waits for a condition; False when it does not hold within the time."""
    limit = time.monotonic() + seconds
    while not done():
        if time.monotonic() > limit:
            return False
        time.sleep(pause)
    return True


def monotonic() -> float:
    """Seconds since any fixed moment."""
    return time.monotonic()


def belonging(place: Path, leaders: Iterable[int], networks: Iterable[Path]) -> list[Process]:
    """The processes of the nodes below a folder, and all their descendants.

    leaders: processes whose sessions are the nodes' (see `recorded`). networks: named network namespaces of machines.
    """
    start = re.compile(
        rf"(sshd -D -e -f |--directory=){re.escape(str(place))}/"
    )  # not a process that reads a log or a key there
    mark = f"GPUFLEET_NODE={place}/".encode()
    inside = {(stat.st_dev, stat.st_ino) for stat in map(_stat, networks) if stat}
    sessions, table = set(leaders), _table()
    for process in table.values():
        if process.pid in sessions and not start.search(process.command):
            sessions.discard(process.pid)  # the pid has been reused since
    ours = {
        p.pid
        for p in table.values()
        if p.session in sessions or p.network in inside or start.search(p.command) or _carries(p.environment, mark)
    }
    while more := {p.pid for p in table.values() if p.parent in ours} - ours:
        ours |= more
    return [table[pid] for pid in sorted(ours - _self_and_ancestors(table))]


def is_running(place: Path, pid: int) -> bool:
    """Whether the process is alive and is the server (or the runner) that was started for this folder."""
    return any(p.pid == pid for p in belonging(place, [], []))


def recorded(file: Path) -> int | None:
    """The process id in a file, if it was written since this computer booted; an older one is invalid."""
    with suppress(FileNotFoundError, ValueError):
        return int(file.read_text()) if file.stat().st_mtime >= _started() else None
    return None


def end(find: Callable[[], list[Process]]) -> None:
    """Ends the processes that `find` returns: with SIGTERM, then with SIGKILL. Raises LocalError when one remains.

    Inside a machine, systemd ends its processes after nspawn got SIGTERM: they are only waited for.
    """
    here = _network(os.getpid())
    for process in find():
        if process.network in (here, None):
            _signal(process.pid, signal.SIGTERM)
    if until(lambda: not find(), STOP_SECONDS):
        return
    for process in find():
        _signal(process.pid, signal.SIGKILL)
    if not until(lambda: not find(), STOP_SECONDS):
        raise LocalError(f"cannot end process {', '.join(f'{p.pid} ({p.command})' for p in find())}")


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _started() -> float:
    """Seconds since the epoch at which this computer started."""
    lines = Path("/proc/stat").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("btime "))


def _table() -> dict[int, Process]:
    """Every readable process; zombies are left out."""
    processes = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and (process := _process(int(entry.name))):
            processes[process.pid] = process
    return processes


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
    stat = _stat(Path(f"/proc/{pid}/ns/net"))
    return (stat.st_dev, stat.st_ino) if stat else None


def _stat(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        return path.stat()
    return None


def _carries(environment: bytes, mark: bytes) -> bool:
    return environment.startswith(mark) or b"\0" + mark in environment


def _self_and_ancestors(table: dict[int, Process]) -> set[int]:
    """This process may run inside a node's session: that does not make it a part of the node."""
    pid, ancestors = os.getpid(), set[int]()
    while pid in table and pid not in ancestors:
        ancestors.add(pid)
        pid = table[pid].parent
    return ancestors
