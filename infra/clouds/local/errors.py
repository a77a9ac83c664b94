"""What can go wrong on this computer, told to a person in one line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


class LocalError(Exception):
    """One clear line: what, where, and the remedy."""


LocalError.__module__ = "builtins"  # the engine prints the qualified name in front of the line; the module is no news


def run(*command: object) -> str:
    """Runs a program of this computer and returns what it printed. Raises LocalError with its last words."""
    words = [str(word) for word in command]
    answer = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if answer.returncode:
        said = (answer.stderr.strip() or answer.stdout.strip() or f"exit code {answer.returncode}").splitlines()[-1]
        raise LocalError(f"`{' '.join(words)}` failed: {said}")
    return answer.stdout


@contextmanager
def one_line_errors(what: str) -> Iterator[None]:
    """Turns an error of the operating system into a LocalError that says what was being done."""
    try:
        yield
    except OSError as error:
        remedy = "; free some space and run it again" if error.errno in (28, 122) else ""
        place = f": {error.filename}" if error.filename else ""
        raise LocalError(f"{what}: {error.strerror or error}{place}{remedy}") from None
