"""The rendezvous store outside the job, where its nodes find each other; losing a node does not affect it. It holds no
training state, and accepts only connections that have its key."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import sys
import time
from functools import partial
from types import FrameType

from training.elastic.rendezvous.door import Door, same_login
from training.elastic.rendezvous.endpoint import Endpoint
from training.elastic.rendezvous.errors import StoreAddressError, StoreUnreachableError
from training.elastic.rendezvous.handshake import HandshakeError, admit, join
from training.elastic.rendezvous.hidden_store import FRONT, HiddenStore
from training.elastic.rendezvous.key import store_key

ANSWER_SECONDS = 60  # a store that is started with its job may come a little later
AGAIN_SECONDS = 0.5


def guarded(store: HiddenStore, address: str, port: int, key: bytes) -> Door:
    """The store's door to the network, on that address alone. Raises OSError."""
    return Door(socket.create_server((address, port)), partial(admit, key=key), store.connect)


def way_to(store: Endpoint, key: bytes) -> Door:
    """A door on loopback to a store elsewhere, for the processes of this user. Raises StoreUnreachableError where the
    store does not answer, or has another key."""
    asyncio.run(_answers(store, key))

    async def onward(first: bytes) -> socket.socket:
        connection = await _dial(store, key)
        await asyncio.get_running_loop().sock_sendall(connection, first)
        return connection

    return Door(socket.create_server((FRONT, 0)), same_login, onward)


async def _answers(store: Endpoint, key: bytes) -> None:
    until = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            (await _dial(store, key)).close()
            return
        except HandshakeError as error:
            raise StoreUnreachableError(f"the rendezvous store at {store} {error}") from error
        except (OSError, TimeoutError) as error:
            if time.monotonic() > until:
                said = f"no rendezvous store answers at {store} (`python -m training store` serves one)"
                raise StoreUnreachableError(said) from error
        await asyncio.sleep(AGAIN_SECONDS)


async def _dial(store: Endpoint, key: bytes) -> socket.socket:
    """A connection to the store, after the handshake."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(store.host, store.port, family=socket.AF_INET, type=socket.SOCK_STREAM)
    connection = socket.socket()
    try:
        connection.setblocking(False)
        async with asyncio.timeout(ANSWER_SECONDS):
            await loop.sock_connect(connection, addresses[0][4])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await join(connection, key)
    except BaseException:  # a cancelled task too leaves no socket open
        connection.close()
        raise
    return connection


def serve(address: str, port: int, key_source: str | None) -> int:
    """Serve until standard input closes or SIGTERM comes; the first line printed is `{"address", "port"}`.

    Raises StoreKeyError, StoreAddressError.
    """
    key = store_key(key_source, make=True)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # every rank of the job takes two
    try:
        door = guarded(HiddenStore(), address, port, key)
    except OSError as error:
        raise StoreAddressError(f"cannot listen on {address}:{port}: {error.strerror}") from error
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    print(json.dumps({"address": address, "port": door.port}), flush=True)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    return 0


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
