"""Run on a node as root: runs a program whose login may do more in buckets for as long as it runs, and no longer.

Arguments: FOLDER LOGIN NAME GRANT PROGRAM ARGUMENT…. FOLDER: `running` of `grants`. GRANT: a grant as JSON, of which
nothing is secret. The grant is locked by this process, which waits for the program: whatever ends it ends the grant.
Signals that ask for an end go to the program, whose exit code is ours.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import grants

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
ASKS_FOR_AN_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def granted(folder: Path, name: str, text: str):
    """Root's file, locked before anybody sees it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sweep(folder)
    file = folder / f"{name}.{os.getpid()}.json"
    aside = file.with_suffix(".new")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.write(text)
        opened.flush()
        aside.rename(file)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Takes away what others, killed, have left."""
    for file in folder.glob("*.json"):
        with suppress(FileNotFoundError), file.open() as opened:
            if not grants.is_locked(opened.fileno()):
                file.unlink()


def run(command: list[str]) -> int:
    """The exit code of a program, as a shell has it."""
    child, early = None, []

    def pass_on(number: int, _frame: object) -> None:
        if child is None:  # it is being started: it gets the signal once it is there
            early.append(number)
        else:
            child.send_signal(number)

    for number in ASKS_FOR_AN_END:
        signal.signal(number, pass_on)
    child = subprocess.Popen(command)
    for number in early:
        child.send_signal(number)
    code = child.wait()
    return code if code >= 0 else 128 - code


def main(folder: str, login: str, name: str, text: str, *command: str) -> int:
    if not grants.LOGIN.fullmatch(login) or not NAME.fullmatch(name) or not command:
        sys.exit(f"{login!r}, {name!r}: no login, or no name of a run")
    try:
        grants.places(text)
    except (grants.RefusedError, ValueError, TypeError, KeyError) as error:
        sys.exit(f"the grant of {name} is none: {error}")
    with granted(Path(folder, login), name, text):
        return run(list(command))


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(*sys.argv[1:]))
