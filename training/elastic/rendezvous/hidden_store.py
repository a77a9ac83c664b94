"""A TCPStore that accepts connections from this process only.

It listens on loopback, where every process of the computer could reach it, and cannot check who connects. So its socket
accepts only signed segments (the MD5 signature option of TCP, RFC 2385; `TCP_MD5SIG_EXT` of linux/tcp.h, which needs no
privilege), and the key never leaves this process: the kernel drops everything else. The signatures control who
connects; they do not encrypt.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import struct

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]: documented there

from training.elastic.rendezvous.door import Door, same_login

FRONT, BEHIND = "127.0.0.1", "127.0.0.2"  # one port on both
CONNECT_SECONDS = 10
TRIES = 20
TCP_MD5SIG_EXT, BY_PREFIX, EVERY_ADDRESS = 32, 1, 0  # linux/tcp.h: the option, its flag, and a prefix of no bits
KEY_BYTES, ADDRESS_BYTES = 80, 128  # TCP_MD5SIG_MAXKEYLEN, and a sockaddr_storage


class HiddenStore:
    """The store, and the door to it for the processes of this user: 127.0.0.1:`port`. Raises OSError."""

    def __init__(self) -> None:
        front, behind = _same_port()
        self.port: int = front.getsockname()[1]
        self._key = secrets.token_bytes(KEY_BYTES)
        _sign(behind, self._key)
        for listener in (front, behind):
            listener.listen(socket.SOMAXCONN)
        self.door = Door(front, same_login, self.connect)
        # Its own client comes by the door, too: what it connects to is not the socket that the server listens on.
        self.store = TCPStore(
            FRONT, self.port, is_master=True, wait_for_workers=False, master_listen_fd=behind.detach()
        )

    async def connect(self, first: bytes) -> socket.socket:
        """A connection to the store, to which these first bytes have been sent. Raises OSError, TimeoutError."""
        loop = asyncio.get_running_loop()
        ours = socket.socket()
        try:
            ours.setblocking(False)
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _sign(ours, self._key)
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.sock_connect(ours, (BEHIND, self.port))
                await loop.sock_sendall(ours, first)
        except BaseException:  # whatever ends this, a cancelled task too, leaves no socket open
            ours.close()
            raise
        return ours


def _same_port() -> tuple[socket.socket, socket.socket]:
    """Two sockets, in front and behind, on one port that is free on both addresses."""
    for _ in range(TRIES):
        front, behind = socket.socket(), socket.socket()
        front.bind((FRONT, 0))
        try:
            behind.bind((BEHIND, front.getsockname()[1]))
        except OSError:  # that one is taken there
            front.close()
            behind.close()
        else:
            return front, behind
    raise OSError(errno.EADDRINUSE, f"no port is free on both {FRONT} and {BEHIND}")


def _sign(end: socket.socket, key: bytes) -> None:
    """Has the kernel sign what this socket sends to any address, and drop what comes without the key's signature."""
    address = struct.pack("=H", socket.AF_INET).ljust(ADDRESS_BYTES, b"\0")
    try:
        end.setsockopt(
            socket.IPPROTO_TCP,
            TCP_MD5SIG_EXT,
            address + struct.pack("=BBHi", BY_PREFIX, EVERY_ADDRESS, len(key), 0) + key,
        )
    except OSError as error:
        reason = (
            f"{error.strerror}: this kernel signs no TCP (CONFIG_TCP_MD5SIG, off with FIPS), which guards the store"
        )
        raise OSError(error.errno, reason) from error
