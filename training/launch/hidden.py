"""A TCPStore that takes connections from this process alone.

It listens on loopback, where every process of the computer could reach it, and cannot be told to ask who comes. So its
listening socket carries a filter (SO_ATTACH_FILTER, socket(7)) that drops all segments; while this process makes a
connection it lets those pass that come from one source port, which a socket of this process holds. The server's end of
a connection keeps the filter of the moment that it was made in.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import socket
import struct
import termios

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]: documented there

from training.launch.door import Door, same_login

FRONT, BEHIND = "127.0.0.1", "127.0.0.2"  # one port on both
CONNECT_SECONDS = 10
TRIES = 20
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
LOAD_HALF_WORD, JUMP_IF_EQUAL, RETURN = 0x28, 0x15, 0x06  # linux/filter.h, linux/bpf_common.h
WHOLE = 0xFFFFFFFF  # keep the whole segment


class HiddenStore:
    """The store, and the door to it for the processes of this login: 127.0.0.1:`port`. Raises OSError."""

    def __init__(self) -> None:
        front, self._behind = _same_port()
        self.port: int = front.getsockname()[1]
        self._one_at_a_time = asyncio.Lock()
        _take_only_from(self._behind, 0)
        for listener in (front, self._behind):
            listener.listen(socket.SOMAXCONN)
        self.door = Door(front, same_login, self.connect)
        # Its own client comes by the door, too: what it connects to is not the socket that the server listens on.
        self.store = TCPStore(
            FRONT, self.port, is_master=True, wait_for_workers=False, master_listen_fd=self._behind.dup().detach()
        )

    async def connect(self, first: bytes) -> socket.socket:
        """A connection to the store, on which these first bytes have arrived: from then on its server's end exists, and
        the filter may change for the next one. Raises OSError, TimeoutError."""
        loop = asyncio.get_running_loop()
        ours = socket.socket()
        try:
            ours.setblocking(False)
            ours.bind((FRONT, 0))
            ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with self._one_at_a_time, asyncio.timeout(CONNECT_SECONDS):
                _take_only_from(self._behind, ours.getsockname()[1])
                try:
                    await loop.sock_connect(ours, (BEHIND, self.port))
                    await loop.sock_sendall(ours, first)
                    while _unacknowledged_bytes(ours):
                        await asyncio.sleep(0.001)
                finally:
                    _take_only_from(self._behind, 0)
        except BaseException:
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


def _take_only_from(listener: socket.socket, port: int) -> None:
    """Has the kernel drop every segment from another source port; 0, which no segment comes from, drops all."""
    program = [
        (LOAD_HALF_WORD, 0, 0, 0),  # the source port: a TCP header begins with it
        (JUMP_IF_EQUAL, 0, 1, port),
        (RETURN, 0, 0, WHOLE),
        (RETURN, 0, 0, 0),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))


def _unacknowledged_bytes(connection: socket.socket) -> int:
    """What was sent and has not been acknowledged (SIOCOUTQ, tcp(7))."""
    return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]
