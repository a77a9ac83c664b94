"""The launcher's and the ranks' view of the system: its clocks, processes, addresses and random numbers.

The other modules of this package are handed these objects, and have the system's own by default, so that a test can
hand in others.
"""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import secrets
import signal
import socket
import struct
import time
from datetime import UTC, datetime
from typing import Protocol

SIOCGIFADDR = 0x8915  # netdevice(7)


class Clock(Protocol):
    """Time, in seconds."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """A clock that is never set, the same for all processes of a node."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The system's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Processes(Protocol):
    """Processes of this node, by their process id."""

    def send(self, pid: int, number: signal.Signals) -> None:
        """Sends a signal; raises ProcessLookupError where there is no such process."""
        ...

    def runs(self, pid: int) -> bool:
        """Whether this child of ours has not ended."""
        ...


class SystemProcesses:
    """The system's processes."""

    def send(self, pid: int, number: signal.Signals) -> None:
        os.kill(pid, number)

    def runs(self, pid: int) -> bool:
        """Leaves the child's exit code to torch, which waits for it."""
        try:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # torch has the exit code already
            return False


CLOCK = SystemClock()
PROCESSES = SystemProcesses()


def host_name() -> str:
    """The name of this node."""
    return socket.gethostname()


def random_name() -> str:
    """16 hex digits."""
    return secrets.token_hex(8)


def address_towards(host: str) -> str:
    """This node's own address on the route to `host`: the one its peers can reach. Loopback hosts give 127.0.0.1,
    since the nodes of a store on loopback are processes of one computer. Raises OSError when the name or the route is
    unknown."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # UDP: chooses the route, sends nothing
        address = probe.getsockname()[0]
    return "127.0.0.1" if ipaddress.ip_address(address).is_loopback else address


def interface_of(address: str) -> str | None:
    """The name of the network card that has this address as its first one, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(query.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.ENODEV):  # no IPv4 address, or gone meanwhile
                    raise
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None
