"""The SSH host keys of machines, learnt from their cloud and not from whoever answers on port 22.

cloud-init writes a fresh machine's public host keys to its console (module keys_to_console), and the console comes
through the cloud's API, under the account's own authentication: nobody on the network can put a key there. What was
learnt is kept, since later output pushes the keys out of the console's buffer (EC2 API, GetConsoleOutput: 64 KB).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

BLOCK = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL)
KEY = re.compile(r"^(ssh-ed25519 [A-Za-z0-9+/=]+)", re.MULTILINE)


class Machine(Protocol):
    """A machine of a cloud: its id, and the addresses where SSH meets it; an address that it lacks is empty."""

    @property
    def id(self) -> str: ...
    @property
    def private_address(self) -> str: ...
    @property
    def public_address(self) -> str: ...


def learn(machines: Sequence[Machine], known_hosts: Path, console: Callable[[str], str]) -> dict[str, str]:
    """The host keys by machine id; a machine whose console says nothing yet is left out.

    known_hosts: a line for each machine that lives, under its id and the addresses where SSH meets it. console: what
    the machine of an id has said on its console.
    """
    kept = _read(known_hosts)
    keys = {each.id: kept.get(each.id) or _told(console(each.id)) for each in machines}
    known = {id_: key for id_, key in keys.items() if key}
    _write(known_hosts, [(each, known[each.id]) for each in machines if each.id in known])
    return known


def _told(console: str) -> str:
    blocks = BLOCK.findall(console)
    found = KEY.search("\n".join(line.strip() for line in blocks[-1].splitlines())) if blocks else None
    return found[1] if found else ""


def _read(known_hosts: Path) -> dict[str, str]:
    lines = known_hosts.read_text().splitlines() if known_hosts.is_file() else []
    return {names.partition(",")[0]: key for names, _, key in (line.partition(" ") for line in lines)}


def _write(known_hosts: Path, keys: Iterable[tuple[Machine, str]]) -> None:
    lines = [
        f"{','.join(filter(None, [each.id, each.private_address, each.public_address]))} {key}\n" for each, key in keys
    ]
    known_hosts.parent.mkdir(parents=True, exist_ok=True)
    fresh = known_hosts.with_suffix(".new")
    fresh.write_text("".join(lines))
    fresh.replace(known_hosts)
