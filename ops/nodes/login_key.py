"""The private key by which people and playbooks log in, at the path that the handover names."""

from __future__ import annotations

from pathlib import Path

from ops.engine import processes
from ops.errors import CommandError


def ensure_key(key_file: Path, public_key: str | None) -> None:
    """Keeps an existing key. Otherwise links the private half of the stack file's public key, or makes a pair.

    Raises CommandError when the stack file names a public key whose private half is not on this computer.
    """
    if key_file.exists():
        return
    key_file.parent.mkdir(parents=True, exist_ok=True)
    if public_key is None:
        comment = f"gpufleet {key_file.parent.name}"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", key_file]
        if (answer := processes.captured(command)).returncode:
            raise CommandError(f"`ssh-keygen -f {key_file}` failed: {answer.stderr.strip()}")
    elif own := _private_half(public_key):
        key_file.symlink_to(own)
        Path(f"{key_file}.pub").symlink_to(f"{own}.pub")  # EC2 Instance Connect is given this half
    else:
        raise CommandError(
            f"cluster.access.public_key: its private half is not on this computer: link it to {key_file}, "
            "or let the nodes configure themselves with --no-wait"
        )


def _private_half(public_key: str) -> Path | None:
    """The one of the user's own keys whose public file matches."""
    key = public_key.split()[:2]
    files = (Path.home() / ".ssh").glob("*.pub")
    candidates = (file.with_suffix("") for file in files if file.read_text().split()[:2] == key)
    return next((file for file in candidates if file.is_file()), None)
