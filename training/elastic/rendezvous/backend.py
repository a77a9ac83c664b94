"""torch's dynamic rendezvous, by which launchers agree on who takes part, with a state that cannot contain code.

torch keeps the state as a pickle in the store and unpickles whatever is there, once a second on every node
(`_BackendRendezvousStateHolder.sync` in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, 2.13 to 2.15). Here
it is JSON with an HMAC-SHA256 over the run's name and the text. A state of another form, of another key, or of an
earlier round than was seen is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]: documented there
from torch.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousBackend,
    RendezvousSettings,
    RendezvousTimeout,
    _BackendRendezvousStateHolder,
    _NodeDesc,
    _RendezvousState,
)

# Defaults notice a lost node after 43 to 52 s; these after 4 to 10 s. The nodes' clocks must agree within 3 s (NTP).
LAST_CALL = KEEP_ALIVE = timedelta(seconds=1)
KEEP_ALIVE_ATTEMPTS = 3
JOIN_SECONDS = 600
MOST_BYTES = 2**20  # of a state: some 5,000 nodes


class Rendezvous(DynamicRendezvousHandler):
    """The handler of one launcher. run: its name. key: of the store. local_addr: this node's, as its peers know it."""

    def __init__(self, run: str, store: Store, key: bytes, least: int, most: int, local_addr: str) -> None:
        settings = RendezvousSettings(
            run,
            least,
            most,
            RendezvousTimeout(join=timedelta(seconds=JOIN_SECONDS), last_call=LAST_CALL),
            keep_alive_interval=KEEP_ALIVE,
            keep_alive_max_attempt=KEEP_ALIVE_ATTEMPTS,
        )
        node = self._node_desc_generator.generate(local_addr)
        super().__init__(node, settings, "gpufleet", store, SealedState(store, key, settings))

    @property
    def use_agent_store(self) -> bool:
        """The ranks are clients of a store that is there: none of them opens one."""
        return True


class SealedState(_BackendRendezvousStateHolder):
    """The state as this launcher knows it, and the way to the store and back."""

    def __init__(self, store: Store, key: bytes, settings: RendezvousSettings) -> None:
        super().__init__(cast(RendezvousBackend, None), settings)  # its own `sync`, replaced here, is all that uses one
        self._store, self._key, self._place = store, key, f"gpufleet.rendezvous.{settings.run_id}"
        self._round = 0  # the newest that was in the store; a change of this launcher's that lost may be ahead of it
        self._token = self._ask("compare_set", self._place, "", self._sealed(self._state))

    def sync(self) -> bool | None:
        """Writes a changed state, or else reads it where a second has passed; whether it was written, None if there was
        nothing to write. Where another node wrote first, its state is kept and this one's changes are lost."""
        written = None
        if self._dirty:
            sealed = self._sealed(self._state)
            current = self._ask("compare_set", self._place, self._token, sealed)
            written = current == sealed
        elif time.monotonic() < self._last_sync_time + self._cache_duration:
            return None
        else:
            current = self._ask("get", self._place)
        state = self._opened(current)
        if state.round < self._round:
            raise RendezvousStateError(f"round {state.round} came after round {self._round}")
        self._round = state.round
        self._state, self._token, self._dirty = state, current, False
        self._last_sync_time = time.monotonic()
        self._sanitize()
        return written

    def _ask(self, operation: str, *arguments: str) -> str:
        try:
            answer: bytes = getattr(self._store, operation)(*arguments)
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise RendezvousConnectionError("the rendezvous store does not answer any more") from error
        return answer.decode(errors="replace")

    def _sealed(self, state: _RendezvousState) -> str:
        text = json.dumps(to_json(state))
        return f"{self._seal(text)} {text}"

    def _opened(self, sealed: str) -> _RendezvousState:
        """Raises RendezvousStateError."""
        seal, _, text = sealed.partition(" ")
        if len(text) > MOST_BYTES or not hmac.compare_digest(seal.encode(), self._seal(text).encode()):
            raise RendezvousStateError("the state in the store is not one that a launcher of this run wrote")
        return from_json(json.loads(text))

    def _seal(self, text: str) -> str:
        message = json.dumps([self._settings.run_id, text]).encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


def to_json(state: _RendezvousState) -> dict[str, Any]:
    """The state in plain values."""
    return {
        "round": state.round,
        "complete": state.complete,
        "deadline": state.deadline and state.deadline.isoformat(),
        "closed": state.closed,
        "participants": [[*_node(node), rank] for node, rank in state.participants.items()],
        "wait_list": [_node(node) for node in sorted(state.wait_list)],
        "redundancy_list": [_node(node) for node in sorted(state.redundancy_list)],
        "last_heartbeats": [[*_node(node), at.isoformat()] for node, at in state.last_heartbeats.items()],
    }


def from_json(document: Mapping[str, Any]) -> _RendezvousState:
    """The state of such values, which a launcher with the key has written."""
    state = _RendezvousState()
    state.round, state.complete, state.closed = (document[key] for key in ("round", "complete", "closed"))
    state.deadline = document["deadline"] and datetime.fromisoformat(document["deadline"])
    state.participants = {_NodeDesc(*node): rank for *node, rank in document["participants"]}
    state.wait_list = {_NodeDesc(*node) for node in document["wait_list"]}
    state.redundancy_list = {_NodeDesc(*node) for node in document["redundancy_list"]}
    state.last_heartbeats = {_NodeDesc(*node): datetime.fromisoformat(at) for *node, at in document["last_heartbeats"]}
    return state


def _node(node: _NodeDesc) -> list[Any]:
    return [node.addr, node.pid, node.local_id]
