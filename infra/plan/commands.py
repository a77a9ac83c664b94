"""Commands that a stack runs: on the user's computer, and on nodes as root. Listed for review."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Where = Literal["this computer", "nodes as root"]
BOOT = "boot"  # the `when` of what nodes run by themselves, from their user data
SSH_CALLERS = "up, status, train, doctor"  # the sub-commands that log in to nodes


@dataclass(frozen=True, kw_only=True)
class CommandPlan:
    """A command. when: the sub-commands that run it, and for what. argv: its words as the plan knows them; what only
    `up` finds out reads `${…}`."""

    where: Where
    when: str
    argv: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "argv": list(self.argv)}


def here(when: str, *argv: str) -> CommandPlan:
    """A command of this computer."""
    return CommandPlan(where="this computer", when=when, argv=argv)


def as_root(when: str, *argv: str) -> CommandPlan:
    """A command of the nodes' root."""
    return CommandPlan(where="nodes as root", when=when, argv=argv)


def mounts(name: str, mount: str, client: str, options: Sequence[str]) -> Iterator[CommandPlan]:
    """The client that mounts a storage on every node; none for what is mounted already."""
    if client:
        flags = ("-o", ",".join(options)) if options else ()
        yield as_root(f"up, storage {name}", client, *flags, f"${{{name}}}", mount)
