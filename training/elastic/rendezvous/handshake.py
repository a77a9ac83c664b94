"""The handshake by which both ends of a connection prove that they have the store's key, without sending it.

    store:    gpufleet-store 1 NONCE
    launcher: NONCE PROOF
    store:    PROOF

A proof is HMAC-SHA256 over the role and both nonces, so it is not valid on another connection or for the other role
(RFC 2104; the scheme is that of ISO/IEC 9798-4, mutual authentication in three passes). Every line has a fixed length,
so neither end reads more than that of an unknown peer. What follows is not encrypted.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import socket

HELLO = b"gpufleet-store 1 "
HEX = 64  # of a nonce, and of a proof
SECONDS = 5  # for a whole handshake


class HandshakeError(OSError):
    """The other end has not proven that it has the key."""


async def admit(connection: socket.socket, key: bytes) -> None:
    """The store's end. Raises HandshakeError, TimeoutError, and OSError where the other end goes."""
    async with asyncio.timeout(SECONDS):
        loop, ours = asyncio.get_running_loop(), nonce()
        await loop.sock_sendall(connection, HELLO + ours + b"\n")
        theirs, _, claim = (await exactly(connection, 2 * HEX + 2)).rstrip(b"\n").partition(b" ")
        if not hmac.compare_digest(claim, proof(key, b"launcher", ours, theirs)):
            raise HandshakeError("has another key, or none")
        await loop.sock_sendall(connection, proof(key, b"store", ours, theirs) + b"\n")


async def join(connection: socket.socket, key: bytes) -> None:
    """The launcher's end. Raises HandshakeError, TimeoutError, and OSError where the other end goes."""
    async with asyncio.timeout(SECONDS):
        loop, ours = asyncio.get_running_loop(), nonce()
        hello = await exactly(connection, len(HELLO) + HEX + 1)
        if not hello.startswith(HELLO):
            raise HandshakeError("is no store of this version of gpufleet")
        theirs = hello.removeprefix(HELLO).rstrip(b"\n")
        await loop.sock_sendall(connection, ours + b" " + proof(key, b"launcher", theirs, ours) + b"\n")
        try:
            claim = await exactly(connection, HEX + 1)
        except ConnectionError as error:
            raise HandshakeError("has another key than this launcher") from error
        if not hmac.compare_digest(claim.rstrip(b"\n"), proof(key, b"store", theirs, ours)):
            raise HandshakeError("has another key than this launcher")


def nonce() -> bytes:
    return secrets.token_hex(HEX // 2).encode()


def proof(key: bytes, role: bytes, of_store: bytes, of_launcher: bytes) -> bytes:
    return hmac.new(key, b" ".join((role, of_store, of_launcher)), hashlib.sha256).hexdigest().encode()


async def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes; raises ConnectionError where the other end closes before."""
    received = b""
    while len(received) < count:
        block = await asyncio.get_running_loop().sock_recv(connection, count - len(received))
        if not block:
            raise ConnectionResetError("closed during the handshake")
        received += block
    return received
