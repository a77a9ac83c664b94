"""The rendezvous store outside the job: the nodes of a job find each other there, and the loss of any node leaves it
alone.

It holds no training state. It has no password (PyTorch's SECURITY.md: not for untrusted networks), so it listens on one
address only and belongs in a private network.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from types import FrameType

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]: documented there

from training.launch.ended import EXIT_BAD_JOB, Ended


def open_store(address: str, port: int = 0) -> TCPStore:
    """A store served by this process on that address alone (TCPStore by itself listens on all). Raises OSError."""
    listener = socket.create_server((address, port))
    port = listener.getsockname()[1]
    return TCPStore(address, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach())


def serve(address: str, port: int) -> int:
    """Serve until standard input closes or SIGTERM comes; the first line printed is `{"address", "port"}`."""
    try:
        store = open_store(address, port)
    except OSError as error:
        raise Ended(EXIT_BAD_JOB, f"cannot listen on {address}:{port}: {error.strerror}") from error
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    print(json.dumps({"address": address, "port": store.port}), flush=True)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    return 0


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
