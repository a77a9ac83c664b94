"""Access control in front of a store: a listener that closes connections that may not enter, before the store sees
them.

torch's TCPStore accepts every connection and trusts it (PyTorch's SECURITY.md). So no process of another user reaches
one: on the network a door requires the key, on this computer a door checks with the kernel whose process connects.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

Admit = Callable[[socket.socket], Awaitable[None]]
Onward = Callable[[bytes], Awaitable[socket.socket]]

WAITING = 256  # connections that are not admitted yet; one more, and the oldest goes
BLOCK_BYTES = 65536
ESTABLISHED = "01"  # of include/net/tcp_states.h
MAPPED = "".join(f"{int.from_bytes(part, sys.byteorder):08X}" for part in (bytes(4), bytes(4), b"\0\0\xff\xff"))


class Door:
    """Forwards admitted connections, in a thread of its own, until the process ends or `close`.

    admit: raises OSError or TimeoutError for a connection that must be closed. onward: opens the connection to forward
    to, given the first bytes that the other end sent.
    """

    def __init__(self, listener: socket.socket, admit: Admit, onward: Onward) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener, self._admit, self._onward = listener, admit, onward
        self._waiting: dict[asyncio.Task[None], None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"door {self.port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Closes all connections."""
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join()

    def _run(self) -> None:
        self._listener.setblocking(False)
        self._serving = self._loop.create_task(self._serve())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)
        self._loop.close()

    async def _serve(self) -> None:
        try:
            while True:
                await self._accept()
        finally:
            self._listener.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self) -> None:
        try:
            connection, _ = await self._loop.sock_accept(self._listener)
        except OSError:  # the other end has gone, or there is no descriptor left: those that wait go within seconds
            await asyncio.sleep(0.1)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._pass(connection))
        self._tasks.add(task)
        self._waiting[task] = None
        task.add_done_callback(self._forget)
        if len(self._waiting) > WAITING:
            next(iter(self._waiting)).cancel()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._waiting.pop(task, None)

    async def _pass(self, outer: socket.socket) -> None:
        """One connection, from its admission to its end."""
        with outer, suppress(OSError, TimeoutError):
            await self._admit(outer)
            task = asyncio.current_task()
            assert task is not None
            self._waiting.pop(task, None)
            outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first = await self._loop.sock_recv(outer, BLOCK_BYTES)
            if first:
                with await self._onward(first) as inner:
                    await joined(outer, inner)


async def joined(one: socket.socket, other: socket.socket) -> None:
    """Carries bytes both ways; returns when either end has closed."""
    directions = [asyncio.ensure_future(carry(*direction)) for direction in ((one, other), (other, one))]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def carry(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while block := await loop.sock_recv(source, BLOCK_BYTES):
        await loop.sock_sendall(sink, block)


async def same_login(connection: socket.socket) -> None:
    """Admits only processes of this user on this computer; raises PermissionError.

    The kernel says whose a socket is: `/proc/net/tcp`, and `tcp6` for one of IPv6's type (proc_net_tcp(5)).
    A socket that its process has closed has no inode, and uid 0.
    """
    ends = tuple(_in_table(address) for address in (connection.getpeername(), connection.getsockname()))
    for table, prefix in (("tcp", ""), ("tcp6", MAPPED)):
        row = [*(prefix + end for end in ends), ESTABLISHED]
        for line in Path(f"/proc/self/net/{table}").read_text(encoding="ascii").splitlines():
            if (fields := line.split())[1:4] == row and int(fields[7]) == os.geteuid() and fields[9] != "0":
                return
    raise PermissionError("a process of another user")


def _in_table(address: tuple[str, int]) -> str:
    """As `/proc/net/tcp` has it: the address as a number of this machine's byte order, then the port."""
    return f"{int.from_bytes(socket.inet_aton(address[0]), sys.byteorder):08X}:{address[1]:04X}"
