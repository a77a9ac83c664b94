"""This node as the others see it: its address on the way to the store, its network card, its cores and GPUs."""

from __future__ import annotations

import argparse
import errno
import fcntl
import ipaddress
import os
import socket
import struct
from dataclasses import dataclass

SIOCGIFADDR = 0x8915  # netdevice(7)


@dataclass(frozen=True)
class Endpoint:
    """Where the rendezvous store listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """`HOST:PORT`; raises argparse's error otherwise."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Nodes:
    """How many nodes a job may have: it starts with `least` and takes up to `most`."""

    least: int
    most: int

    @classmethod
    def parse(cls, text: str) -> Nodes:
        """`2` or `1:4`; raises argparse's error otherwise."""
        least, _, most = text.partition(":")
        most = most or least
        if not (least.isdecimal() and most.isdecimal() and 1 <= int(least) <= int(most)):
            raise argparse.ArgumentTypeError(f"{text!r} is not MIN or MIN:MAX with 1 ≤ MIN ≤ MAX")
        return cls(int(least), int(most))


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
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asker.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.ENODEV):  # no IPv4 address, or gone meanwhile
                    raise
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def threads_a_rank(ranks: int) -> int:
    """Cores of this process's share of the computer over its ranks, at least 1."""
    return max(1, len(os.sched_getaffinity(0)) // ranks)


def settle_environment(address: str, ranks_on_this_computer: int) -> None:
    """Set what the ranks inherit; whatever the person set already stays.

    gloo otherwise binds to what the host name resolves to, which on many systems is 127.0.1.1, unreachable for the
    peers.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_a_rank(ranks_on_this_computer)))
    if (card := interface_of(address)) is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", card)
