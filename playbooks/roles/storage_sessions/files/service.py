"""Run on a node as root, behind a Unix socket: gives each login a session of its own for what it may do in buckets.

Argument: a JSON file, {"cloud","lasting","running", …}: `cloud` names the module beside this one that speaks with the
cloud, the folders are those of `grants`, and the rest is for the module. A module has one function:

    session(settings: dict, grant: Grant, seconds: int) -> dict

which returns {"Version": 1, "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"} (ISO 8601, UTC), valid for
about `seconds` and for the places of the grant alone, and raises OSError or ValueError, whose message the login reads.

Nothing is read from a connection: the kernel says who is at its other end (unix(7), SO_PEERCRED), and the table of
grants what that login gets. So no request can be forged, and nobody who connects and says nothing keeps others waiting.
The answer is one line of JSON, the session or {"error": why}, and the end of the connection. Sessions are kept until
half of their time is over: whoever asks has time to use them, and SDKs, which ask anew fifteen minutes before the end,
do not ask all the time.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import grants
from grants import Grant, RefusedError

FIRST_DESCRIPTOR = 3  # of those that systemd passes on (sd_listen_fds(3))
SESSION_SECONDS = 3600  # the most that a role taken on by a role's session may have (IAM, "role chaining")
FRESH_SECONDS = SESSION_SECONDS / 2
RETRY_SECONDS = 5.0  # after the cloud has refused: an attempt for each connection would be a flood
CLOUD_AT_ONCE, WAITING_AT_ONCE = (
    8,
    32,
)  # grants that the cloud is asked about, and connections that wait for one of them
BUSY = {"error": "too many ask for storage sessions at once: try again"}
NO_DESCRIPTOR_SECONDS = 0.1

Session = Callable[[Grant], dict]


@dataclass(frozen=True)
class Answer:
    """What the cloud said about a grant, and until when it is given to others (time.time)."""

    grant: Grant
    words: dict
    until: float


class Sessions:
    """Asks the cloud once for all who wait for the same grant, and keeps the newest answer of each login."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._answers: dict[str, Answer] = {}
        self._waiting: dict[Grant, list[socket.socket]] = {}

    def give(self, peer: socket.socket, grant: Grant) -> None:
        """Answers a connection, now or once the cloud has."""
        with self._lock:
            answer = self._answers.get(grant.login)
            if answer is None or answer.grant != grant or answer.until < time.time():
                words = self._wait(peer, grant)
            else:
                words = answer.words
        if words is not None:
            say(peer, words)

    def _wait(self, peer: socket.socket, grant: Grant) -> dict | None:
        """Lets it wait; returns what to say where too many do."""
        waiting = self._waiting.get(grant)
        if waiting is None and len(self._waiting) < CLOUD_AT_ONCE:
            self._waiting[grant] = [peer]
            threading.Thread(target=self._ask, args=(grant,), daemon=True).start()
        elif waiting is not None and len(waiting) < WAITING_AT_ONCE:
            waiting.append(peer)
        else:
            return BUSY
        return None

    def _ask(self, grant: Grant) -> None:
        try:
            words = self._session(grant)
            until = datetime.fromisoformat(words["Expiration"].replace("Z", "+00:00")).timestamp() - FRESH_SECONDS
        except Exception as error:  # whatever it is, those who wait get an answer
            print(f"no session for {grant.login}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            words, until = {"error": f"no session for {grant.login}: {error}"}, time.time() + RETRY_SECONDS
        with self._lock:
            self._answers[grant.login] = Answer(grant, words, until)
            waiting = self._waiting.pop(grant)
        for peer in waiting:
            say(peer, words)


def say(peer: socket.socket, words: dict) -> None:
    """One line, which fits into the buffer of a socket that nothing was sent on; then the end."""
    with peer:
        try:
            peer.setblocking(False)
            peer.sendall(json.dumps(words).encode() + b"\n")
        except OSError:
            pass  # gone already


def uid_of(peer: socket.socket) -> int:
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1]


def serve(listener: socket.socket, session: Session, look_up: Callable[[int], Grant]) -> None:
    """For ever."""
    sessions = Sessions(session)
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:  # no descriptor is free, or it has gone already
            time.sleep(NO_DESCRIPTOR_SECONDS)
            continue
        try:
            sessions.give(peer, look_up(uid_of(peer)))
        except RefusedError as why:
            say(peer, {"error": str(why)})


def main(settings_file: str) -> None:
    settings = json.loads(Path(settings_file).read_text())
    cloud = importlib.import_module(settings["cloud"])
    if os.environ.get("LISTEN_FDS") != "1":
        sys.exit("started by hand: systemd starts it with its socket")
    listener = socket.socket(fileno=FIRST_DESCRIPTOR)
    listener.setblocking(True)
    look_up = partial(grants.of_uid, lasting=Path(settings["lasting"]), running=Path(settings["running"]))
    serve(listener, partial(cloud.session, settings, seconds=SESSION_SECONDS), look_up)


if __name__ == "__main__":
    main(sys.argv[1])
