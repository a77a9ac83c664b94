"""Environments apart from the project's own, each from a lock of its own.

`infra/policy_pack/.venv`, since pulumi-policy wants an older protobuf; `tools/peers/.venv`, what benchmarks compare
training with and nothing else needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tools.environment import STAMP, installed, package_index
from tools.phases import CommandError, PhaseError, command


def policy_pack_phase(root: Path, working: Callable[[str], None]) -> str:
    return environment(root, root / "infra" / "policy_pack", working)


def peers_phase(root: Path, working: Callable[[str], None]) -> str:
    return environment(root, root / "tools" / "peers", working)


def environment(root: Path, folder: Path, working: Callable[[str], None]) -> str:
    """Makes the folder's .venv hold exactly the folder's lock; does nothing when it does already."""
    venv, lock = folder / ".venv", folder / "requirements.txt"
    python, stamp = str(venv / "bin" / "python"), venv / STAMP
    digest = hashlib.sha256(lock.read_bytes() + str(venv).encode()).hexdigest() + "\n"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return f"{installed(venv)} packages, unchanged"
    uv, own = [str(root / ".venv" / "bin" / "uv"), "--no-config"], str(root / ".venv" / "bin" / "python")
    try:
        index = package_index(
            command([own, "-m", "pip", "config", "list"], lambda _: working("asking pip for its index"))
        )
        command([*uv, "venv", "--quiet", "--clear", "--python", own, str(venv)], working)
        command([*uv, "pip", "sync", "--python", python, "--require-hashes", str(lock)], working, env=index)
    except CommandError as error:
        remedy = "see that the package index can be reached, then run again: what was downloaded is kept"
        raise PhaseError(str(error), remedy, error.tail) from error
    stamp.write_text(digest, encoding="utf-8")
    return f"{installed(venv)} packages from its own lock"
