"""The error of a node on this computer, in one line for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class LocalError(Exception):
    """One line: what is wrong, where, and the remedy."""


LocalError.__module__ = "builtins"  # the engine prints the qualified name in front of the line: without the module


@contextmanager
def one_line_errors(what: str) -> Iterator[None]:
    """Turns an error of the operating system into a LocalError that names the action."""
    try:
        yield
    except OSError as error:
        remedy = "; free some space and run it again" if error.errno in (28, 122) else ""
        place = f": {error.filename}" if error.filename else ""
        raise LocalError(f"{what}: {error.strerror or error}{place}{remedy}") from None
