"""What goes wrong on demand: words of the environment, `<fault>[=<number>]:<resource type or *>`, parted by blanks.

fail        refused for good, as a missing permission is
throttle    the first <number> tries are one too many for the cloud; without a number all of them
capacity    the cloud has no machine to give to this instance, fleet or group
timeout     made, but the wait for it to be ready ends too early: the engine learns of it as half made
lose        made, then the provider dies before it answers: the engine learns nothing
delay       the answer comes <number> seconds after the resource is there, as the provider waits for it to be ready
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from cloud_provider.kinds import RefusedError
from cloud_provider.store import Store

MOST_TRIES = 25  # the provider's default max_retries (pulumi_aws.Provider)
PAUSE_SECONDS = 0.001  # between two tries; the real one waits longer each time, up to 20 seconds
LOST = 70  # the exit code of a provider that dies on demand

MESSAGES = {
    "fail": ("UnauthorizedOperation", "You are not authorized to perform this operation."),
    "throttle": ("RequestLimitExceeded", "Request limit exceeded."),
}


@dataclass(frozen=True)
class Fault:
    """One word of the environment."""

    name: str
    type: str
    number: float | None


class Faults:
    """The faults of this process. Counts are kept in the cloud, so that they outlast a provider that dies."""

    def __init__(self, store: Store, words: str) -> None:
        self.store, self.all = store, [_parsed(word) for word in words.split()]

    def before(self, action: str, type_: str) -> None:
        """Comes before a resource is made. Raises RefusedError when that shall fail."""
        if self._of("fail", type_):
            raise RefusedError(*MESSAGES["fail"])
        self._throttle(action, type_)

    def _throttle(self, action: str, type_: str) -> None:
        fault = self._of("throttle", type_)
        for _ in range(MOST_TRIES):
            if fault is None or (fault.number is not None and self.store.faults("throttle", type_) >= fault.number):
                return
            self.store.called(action, type_, fault="throttle")
            time.sleep(PAUSE_SECONDS)
        code, message = MESSAGES["throttle"]
        raise RefusedError(code, f"exceeded maximum number of attempts, {MOST_TRIES}: {message}")

    def starved(self, type_: str) -> bool:
        """Whether there shall be no capacity."""
        return self._of("capacity", type_) is not None

    def late(self, type_: str) -> bool:
        """Waits for a new resource; whether the wait shall end too early."""
        if delay := self._of("delay", type_):
            time.sleep(delay.number or 0)
        return self._of("timeout", type_) is not None

    def lose(self, type_: str, id_: str) -> None:
        """Ends this process if nobody shall hear of the new resource."""
        if self._of("lose", type_):
            self.store.called("lost", type_, id_, fault="lose")
            os._exit(LOST)

    def _of(self, name: str, type_: str) -> Fault | None:
        return next((fault for fault in self.all if fault.name == name and fault.type in {type_, "*"}), None)


def _parsed(word: str) -> Fault:
    fault, _, type_ = word.partition(":")
    name, _, number = fault.partition("=")
    if name not in {*MESSAGES, "capacity", "timeout", "lose", "delay"} or not type_:
        raise ValueError(f"faults: {word!r} is not <fault>[=<number>]:<resource type or *>")
    return Fault(name, type_, float(number) if number else None)
