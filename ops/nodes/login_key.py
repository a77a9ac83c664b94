"""The private key by which people and playbooks log in, where the handover says that it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ops.errors import CommandError


def ensure_key(key_file: Path, public_key: str | None) -> None:
    """Keeps the key that is there. Else the stack file's own is looked for among a person's keys, or a pair is made.

    Raises CommandError when the stack file names a public key whose private half is not on this computer.
    """
    if key_file.exists():
        return
    key_file.parent.mkdir(parents=True, exist_ok=True)
    if public_key is None:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"gpufleet {key_file.parent.name}", "-f", key_file],
            check=True,
        )
    elif own := _private_half(public_key):
        key_file.symlink_to(own)
        Path(f"{key_file}.pub").symlink_to(f"{own}.pub")  # EC2 Instance Connect is given this half
    else:
        raise CommandError(
            f"cluster.access.public_key: its private half is not on this computer: link it to {key_file}, "
            "or let the nodes configure themselves with --no-wait"
        )


def _private_half(public_key: str) -> Path | None:
    """One of the person's own keys, by what its public file says."""
    wanted = public_key.split()[:2]
    files = (Path.home() / ".ssh").glob("*.pub")
    found = (file.with_suffix("") for file in files if file.read_text().split()[:2] == wanted)
    return next((file for file in found if file.is_file()), None)
