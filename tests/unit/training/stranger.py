"""Somebody who has no part in a job, and knows every protocol that it speaks.

    python stranger.py UID MARKER

Waits for a line of ADDRESS:PORT…, connects 200 times to them in turn, as that login, and prints `connecting`. Then it
says something else to each, and holds on to what it was given until standard input closes. Its pickles, where a process
of the job loads one, make the file MARKER. Prints how many connections were made, and how many brought an answer beyond
a store's first line.
"""

from __future__ import annotations

import base64
import os
import pickle
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

ATTEMPTS = 200
CONNECT_SECONDS = 2
RUN = "trial"
HELLO_BYTES = 82


class Makes:
    """What makes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str, bytes]]:
        return Path.write_bytes, (Path(self._path), b"was here")  # pyright: ignore[reportReturnType]


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def store_queries(marker: str) -> Iterator[bytes]:
    """TCPStore's protocol (TCPStoreBackend.hpp, torch 2.15): its greeting, then a value under a key that is read."""
    greeting = b"\0" + struct.pack("<I", 0x3C85F7CE)
    planted = pickle.dumps(Makes(marker))
    for value in (base64.b64encode(planted), planted, b"{}", b"0" * 64 + b" {}"):
        for key in (f"/torch.rendezvous.{RUN}", f"/gpufleet.rendezvous.{RUN}"):
            yield greeting + b"\1" + text(key.encode()) + text(value)


def sayings(marker: str) -> Iterator[bytes]:
    """Everything that is tried, again and again."""
    number = struct.Struct("<q").pack
    planted = pickle.dumps(Makes(marker))
    for count in range(sys.maxsize):
        yield from store_queries(marker)
        yield b"\xff" * 4096
        yield b""  # says nothing, and stays
        yield b"a" * 32  # half a line
        yield b"a" * 64 + b" " + b"b" * 64 + b"\n"  # a proof without the key
        yield number(count)  # the place of a peer in gloo's mesh
        yield number(count) + struct.pack("<QQ", 2**62, 0) + planted
        yield b"GET / HTTP/1.1\r\nHost: store\r\n\r\n"


def main(login: int, marker: str) -> None:
    if os.getuid() != login:
        os.setgroups([])
        os.setgid(login)
        os.setuid(login)
    trying: dict[socket.socket, bytes] = {}
    for address, said in islice(zip(cycle(sys.stdin.readline().split()), sayings(marker)), ATTEMPTS):
        host, _, port = address.rpartition(":")
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((host, int(port)))
        trying[connection] = said
    print("connecting", flush=True)
    made, end = 0, time.monotonic() + CONNECT_SECONDS
    answers = dict.fromkeys(trying, 0)
    while (left := end - time.monotonic()) > 0:
        readable, writable, _ = select.select(list(answers), list(trying), [], left)
        for connection in writable:
            said = trying.pop(connection)
            try:
                connection.sendall(said)
                made += 1
            except OSError:
                continue
        for connection in readable:
            try:
                answers[connection] += len(block := connection.recv(65536))
            except OSError:
                block = b""
            if not block and connection in answers and connection not in trying:
                told = answers.pop(connection)
                answered.append(told)
    answered.extend(answers.values())
    print(made, sum(count > HELLO_BYTES for count in answered), flush=True)
    sys.stdin.read()


answered: list[int] = []
if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
