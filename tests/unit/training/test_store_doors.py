"""Who gets to a rendezvous store, with which key, and what of a store's content is believed."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stranger import Makes
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]
from torch.distributed.elastic.rendezvous import RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    RendezvousSettings,
    RendezvousTimeout,
    _NodeDesc,
    _RendezvousState,
)

from training.elastic.rendezvous import handshake
from training.elastic.rendezvous.backend import SealedState, from_json, to_json
from training.elastic.rendezvous.door import WAITING, Door, same_login
from training.elastic.rendezvous.endpoint import Endpoint
from training.elastic.rendezvous.errors import StoreUnreachableError
from training.elastic.rendezvous.hidden_store import BEHIND, HiddenStore
from training.elastic.rendezvous.key import new_key
from training.elastic.rendezvous.server import guarded, way_to

KEY = new_key().encode()
SECONDS = 120  # for an answer that comes, however slow the computer is
PLACE = "gpufleet.rendezvous.run"


@pytest.fixture(scope="module")
def hidden() -> Iterator[HiddenStore]:
    store = HiddenStore()
    yield store
    store.door.close()


@pytest.fixture
def gate(hidden: HiddenStore) -> Iterator[Door]:
    door = guarded(hidden, "127.0.0.1", 0, KEY)
    yield door
    door.close()


def client(port: int) -> TCPStore:
    return TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=SECONDS))


def test_a_launcher_with_the_key_reaches_the_store(hidden: HiddenStore, gate: Door) -> None:
    way = way_to(Endpoint("127.0.0.1", gate.port), KEY)

    client(way.port).set("greeting", "hello")

    assert hidden.store.get("greeting") == b"hello"
    way.close()


def test_a_launcher_with_another_key_is_one_line(gate: Door) -> None:
    with pytest.raises(StoreUnreachableError) as end:
        way_to(Endpoint("127.0.0.1", gate.port), new_key().encode())
    assert str(end.value) == f"the rendezvous store at 127.0.0.1:{gate.port} has another key than this launcher"


def test_a_proof_is_worth_nothing_elsewhere() -> None:
    of_store, of_launcher, other = (handshake.nonce() for _ in range(3))
    proof = handshake.proof(KEY, b"launcher", of_store, of_launcher)

    elsewhere = [(b"launcher", other, of_launcher), (b"launcher", of_store, other), (b"store", of_store, of_launcher)]

    assert proof not in [handshake.proof(KEY, *place) for place in elsewhere]


def test_a_false_store_is_found_out() -> None:
    """It has no key: it can only hand back what it is given."""

    async def echo(connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, handshake.HELLO + handshake.nonce() + b"\n")
        line = await handshake.exactly(connection, 2 * handshake.HEX + 2)
        await loop.sock_sendall(connection, line[-handshake.HEX - 1 :])
        await asyncio.sleep(60)

    async def nowhere(first: bytes) -> socket.socket:
        raise OSError

    false = Door(socket.create_server(("127.0.0.1", 0)), echo, nowhere)
    with pytest.raises(StoreUnreachableError) as end:
        way_to(Endpoint("127.0.0.1", false.port), KEY)
    assert "has another key" in str(end.value)
    false.close()


def test_the_store_reads_no_more_than_a_line_of_a_stranger(gate: Door) -> None:
    with socket.create_connection(("127.0.0.1", gate.port), SECONDS) as stranger:
        stranger.recv(4096)
        stranger.sendall(b"x" * (2 * handshake.HEX + 2) + b"y" * 10)
        with pytest.raises(ConnectionResetError):  # closed with bytes unread
            stranger.recv(4096)


def test_those_who_say_nothing_keep_nobody_out(hidden: HiddenStore, gate: Door) -> None:
    silent = [socket.create_connection(("127.0.0.1", gate.port), SECONDS) for _ in range(WAITING + 50)]

    way = way_to(Endpoint("127.0.0.1", gate.port), KEY)

    assert client(way.port).add("count", 1) == 1
    way.close()
    for connection in silent:
        connection.close()


def test_the_time_to_say_something_ends(monkeypatch: pytest.MonkeyPatch, gate: Door) -> None:
    monkeypatch.setattr(handshake, "SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", gate.port), SECONDS) as silent:
        assert silent.recv(4096).startswith(handshake.HELLO)
        assert silent.recv(4096) == b""


@pytest.mark.parametrize("login", [pytest.param(65534, marks=pytest.mark.skipif(os.geteuid() != 0, reason="root"))])
def test_the_door_on_this_computer_opens_for_one_login_alone(hidden: HiddenStore, login: int) -> None:
    assert heard(hidden.port, os.getuid(), 0.5) == "nothing"  # let in: the store waits for more
    assert heard(hidden.port, login, SECONDS) == "the end"


def test_a_connection_that_its_process_has_left_is_nobodys() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(listener.getsockname()).close()
        left, _ = listener.accept()
        with left, pytest.raises(PermissionError):
            asyncio.run(same_login(left))


def test_the_store_behind_the_door_takes_no_connection(hidden: HiddenStore) -> None:
    with pytest.raises(TimeoutError):
        socket.create_connection((BEHIND, hidden.port), 0.5)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another login")
def test_a_login_without_privileges_serves_a_store() -> None:
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setuid(65534)
        signal.alarm(SECONDS)
        served = HiddenStore().store
        served.set("key", "value")
        os._exit(0 if served.get("key") == b"value" else 3)

    assert os.waitpid(child, 0)[1] == 0


def heard(port: int, login: int, seconds: float) -> str:
    """What a process of this login hears in so many seconds after half a word of TCPStore's protocol."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setuid(login)
        try:
            with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
                connection.settimeout(seconds)
                connection.sendall(b"\0")
                said = "an answer" if connection.recv(1) else "the end"
        except TimeoutError:
            said = "nothing"
        except OSError:  # the end, before what was sent had arrived or after it
            said = "the end"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


def settings(run: str = "run") -> RendezvousSettings:
    return RendezvousSettings(run, 1, 2, RendezvousTimeout(), timedelta(seconds=5), 3)


@pytest.fixture
def empty(hidden: HiddenStore) -> TCPStore:
    hidden.store.delete_key(PLACE)
    return hidden.store


def test_a_state_comes_back_as_it_was() -> None:
    state, nodes = _RendezvousState(), [_NodeDesc("10.0.0.1", 17, 0), _NodeDesc("10.0.0.2", 18, 1)]
    state.round, state.complete, state.deadline = 3, True, datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    state.participants = {nodes[0]: 0}
    state.wait_list, state.redundancy_list = {nodes[1]}, {nodes[0]}
    state.last_heartbeats = {nodes[1]: datetime(2026, 1, 2, tzinfo=UTC)}

    again = from_json(json.loads(json.dumps(to_json(state))))

    assert vars(again) == vars(state)


def test_launchers_of_one_run_see_each_others_changes(empty: TCPStore) -> None:
    one, other = (SealedState(empty, KEY, settings()) for _ in range(2))
    one.state.closed = True
    one.mark_dirty()

    assert one.sync() is True
    other.mark_dirty()
    assert other.sync() is False  # the other was faster
    assert other.state.closed


def test_a_round_that_was_begun_and_lost_against_another_launcher_is_no_earlier_one(empty: TCPStore) -> None:
    one, other = (SealedState(empty, KEY, settings()) for _ in range(2))
    other.state.round = 1
    other.mark_dirty()
    assert other.sync()

    one.state.round = 2
    one.mark_dirty()

    assert one.sync() is False
    assert one.state.round == 1


PLANTED: dict[str, Callable[[Path], bytes]] = {
    "pickle": lambda marker: pickle.dumps(Makes(str(marker))),
    "unsealed": lambda _: json.dumps(to_json(_RendezvousState())).encode(),
    "another key": lambda _: sealed_by(new_key().encode(), "run"),
    "another run": lambda _: sealed_by(KEY, "other"),
    "nothing": lambda _: b"",
    "deep": lambda _: b"0" * 64 + b" " + b"[" * 100_000,
    "long": lambda _: b"0" * 64 + b" " + b"[" * 2**21,
}


def sealed_by(key: bytes, run: str) -> bytes:
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return SealedState(store, key, settings(run))._sealed(_RendezvousState()).encode()


@pytest.mark.parametrize("what", PLANTED)
def test_a_state_that_no_launcher_of_the_run_wrote_is_refused(empty: TCPStore, tmp_path: Path, what: str) -> None:
    state = SealedState(empty, KEY, settings())
    empty.set(PLACE, PLANTED[what](tmp_path / "was here"))  # pyright: ignore[reportArgumentType]: bytes, too

    with pytest.raises(RendezvousStateError, match="not one that a launcher of this run wrote"):
        state.sync()
    assert not (tmp_path / "was here").exists()


def test_a_state_of_an_earlier_round_is_refused(empty: TCPStore) -> None:
    state = SealedState(empty, KEY, settings())
    old = empty.get(PLACE)
    state.state.round = 4
    state.mark_dirty()
    assert state.sync()

    empty.set(PLACE, old)  # pyright: ignore[reportArgumentType]: bytes, too
    state._last_sync_time = -1

    with pytest.raises(RendezvousStateError, match="round 0 came after round 4"):
        state.sync()
