"""The error that ends a command."""

from __future__ import annotations

from infra.printable import printable


class CommandError(Exception):
    """What went wrong and what to do about it, in lines for a person; never a traceback.

    code: the process's exit code: 1 fault or refused plan, 2 wrong file or usage, 75 preempted, 130 interrupted.
    """

    def __init__(self, *lines: str, code: int = 1) -> None:
        super().__init__("\n".join(map(printable, lines)))
        self.code = code
