"""The key of a rendezvous store. Who has it may join a job, so it is in no argument, no log and no file that others can
read.

It is taken from, in this order: `--store-key FILE`, or `-` for the first line of standard input; the environment
variable GPUFLEET_STORE_KEY, which only this user and root can read (proc_pid_environ(5)); else a file of this user.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from training.elastic.rendezvous.errors import StoreKeyError
from training.secret import MOST, KeyFileError, checked, key_in

VARIABLE = "GPUFLEET_STORE_KEY"
STDIN = 0


def store_key(source: str | None, *, make: bool) -> bytes:
    """The key to serve a store with (`make`: a missing file is created) or to join one. Raises StoreKeyError."""
    variable = os.environ.pop(VARIABLE, "")  # the ranks, which inherit the environment, have no use for it
    file = Path(source) if source else default_file()
    try:
        if source == "-":
            return checked(_first_line(), "the first line of standard input")
        if source is None and variable:
            return checked(variable.encode(), VARIABLE)
        if make:
            _make(file)
        return key_in(file)
    except FileNotFoundError as error:
        remedy = f"copy it from where the store runs, with `chmod 600`, or set --store-key or {VARIABLE}"
        raise StoreKeyError(f"no key for the rendezvous store: {file} does not exist; {remedy}") from error
    except KeyFileError as error:
        raise StoreKeyError(f"no key for the rendezvous store: {error}") from error
    except OSError as error:
        raise StoreKeyError(f"cannot use the store's key in {file}: {error.strerror}") from error


def new_key() -> str:
    """256 random bits, in hex."""
    return secrets.token_hex(32)


def default_file() -> Path:
    """One key for all stores of a user; nodes that share a home folder share it."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gpufleet" / "store.key"


def _make(file: Path) -> None:
    """Creates the file unless it exists, atomically."""
    if file.exists():
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(new_key() + "\n")
        os.link(aside, file)
    except FileExistsError:  # another store of this login was faster
        return
    finally:
        aside.unlink(missing_ok=True)


def _first_line() -> bytes:
    """Read byte by byte: what follows is for the next reader of standard input."""
    line = b""
    while len(line) <= MOST and not line.endswith(b"\n") and (byte := os.read(STDIN, 1)):
        line += byte
    return line
