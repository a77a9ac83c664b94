"""The SSH host keys of machines, read from their cloud's console output and not from the network.

cloud-init writes a fresh machine's public host keys to its console (module keys_to_console), and the console comes
through the cloud's API, under the account's own authentication: nobody on the network can forge it. Keys are stored,
since later output pushes them out of the console's buffer (EC2 API, GetConsoleOutput: 64 KB).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

BLOCK = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL)
KEY = re.compile(r"^(ssh-ed25519 [A-Za-z0-9+/=]+)", re.MULTILINE)


class Machine(Protocol):
    """A machine of a cloud: its id and the addresses for SSH; a missing address is empty."""

    @property
    def id(self) -> str: ...
    @property
    def private_address(self) -> str: ...
    @property
    def public_address(self) -> str: ...


def learn(machines: Sequence[Machine], known_hosts: Path, console: Callable[[str], str]) -> dict[str, str]:
    """The host keys by machine id, without machines whose console has no output yet.

    known_hosts: gets a line for each existing machine, under its id and its addresses. console: returns the console
    output of the machine of an id.
    """
    earlier = _read(known_hosts)
    keys = {machine.id: earlier.get(machine.id) or _printed_key(console(machine.id)) for machine in machines}
    known = {id_: key for id_, key in keys.items() if key}
    _write(known_hosts, [(machine, known[machine.id]) for machine in machines if machine.id in known])
    return known


def _printed_key(console: str) -> str:
    blocks = BLOCK.findall(console)
    match = KEY.search("\n".join(line.strip() for line in blocks[-1].splitlines())) if blocks else None
    return match[1] if match else ""


def _read(known_hosts: Path) -> dict[str, str]:
    lines = known_hosts.read_text().splitlines() if known_hosts.is_file() else []
    return {names.partition(",")[0]: key for names, _, key in (line.partition(" ") for line in lines)}


def _write(known_hosts: Path, keys: Iterable[tuple[Machine, str]]) -> None:
    lines = [
        f"{','.join(filter(None, [machine.id, machine.private_address, machine.public_address]))} {key}\n"
        for machine, key in keys
    ]
    known_hosts.parent.mkdir(parents=True, exist_ok=True)
    fresh = known_hosts.with_suffix(".new")
    fresh.write_text("".join(lines))
    fresh.replace(known_hosts)
