"""The SSH host keys of instances, learnt from AWS and not from whoever answers on port 22.

cloud-init writes a fresh machine's public host keys to its console (module keys_to_console), and the console comes
through the API, under the account's own authentication: nobody on the network can put a key there. What was learnt is
kept, since later output pushes the keys out of the console's buffer (EC2 API, GetConsoleOutput: 64 KB).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from botocore.exceptions import ClientError

from ops.aws.account import Account
from ops.aws.tagged import Instance

BLOCK = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL)
KEY = re.compile(r"^(ssh-ed25519 [A-Za-z0-9+/=]+)", re.MULTILINE)


def learn(account: Account, instances: Sequence[Instance], known_hosts: Path) -> dict[str, str]:
    """The host keys by instance id; an instance whose console says nothing yet is left out.

    known_hosts: a line for each instance that lives, under its id and the addresses where SSH meets it.
    """
    kept = _read(known_hosts)
    keys = {each.id: kept.get(each.id) or _console(account, each.id) for each in instances}
    known = {id_: key for id_, key in keys.items() if key}
    _write(known_hosts, [(each, known[each.id]) for each in instances if each.id in known])
    return known


def _console(account: Account, instance: str) -> str:
    ec2 = account.client("ec2")
    try:
        said = ec2.get_console_output(InstanceId=instance, Latest=True)
    except ClientError as error:
        if error.response["Error"]["Code"] != "UnsupportedOperation":
            raise
        said = ec2.get_console_output(InstanceId=instance)  # older types have no latest output, only the posted
    blocks = BLOCK.findall(said.get("Output", ""))
    found = KEY.search("\n".join(line.strip() for line in blocks[-1].splitlines())) if blocks else None
    return found[1] if found else ""


def _read(known_hosts: Path) -> dict[str, str]:
    lines = known_hosts.read_text().splitlines() if known_hosts.is_file() else []
    return {names.partition(",")[0]: key for names, _, key in (line.partition(" ") for line in lines)}


def _write(known_hosts: Path, keys: Iterable[tuple[Instance, str]]) -> None:
    lines = [
        f"{','.join(filter(None, [each.id, each.private_address, each.public_address]))} {key}\n" for each, key in keys
    ]
    known_hosts.parent.mkdir(parents=True, exist_ok=True)
    fresh = known_hosts.with_suffix(".new")
    fresh.write_text("".join(lines))
    fresh.replace(known_hosts)
