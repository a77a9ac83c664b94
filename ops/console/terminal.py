"""Common options of the commands, the confirmation prompt, and all output to the terminal.

Everything printed goes through here, so that no text of a node, a cloud or a file name controls the terminal: no escape
sequence, no markup, no bidirectional override.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import IO, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from infra.printable import printable
from ops.errors import CommandError

Stack = Annotated[str, typer.Argument(metavar="STACK", help="the stack: stacks/Pulumi.STACK.yaml", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]
Rate = Annotated[
    str | None, typer.Option(metavar="CNY=7.10@DAY", help="exchange rate of a dollar on a day, to compare currencies")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


class Screen(Console):
    """A console that prints texts verbatim; Rich's own control codes still work."""

    def __init__(self, file: IO[str] | None = None, **options: Any) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False, soft_wrap=True, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def write(text: str, *, error: bool = False) -> None:
    """Prints lines of text."""
    print(printable(text), file=sys.stderr if error else sys.stdout)


def write_json(document: object) -> None:
    """Prints a document as JSON, with every character beyond ASCII escaped."""
    write(json.dumps(document, indent=1))


def write_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints the traceback of an uncaught error (`sys.excepthook`)."""
    write("".join(traceback.format_exception(kind, error, trace)), error=True)


def confirmed(question: str) -> bool:
    """The answer to a yes/no question. Raises CommandError where there is no terminal."""
    try:
        return typer.confirm(printable(question), err=True)
    except typer.Abort:
        write("", error=True)
        raise CommandError("not a terminal: pass --yes to confirm", code=2) from None


def show(document: dict[str, Any], as_json: bool, text: Callable[[dict[str, Any]], str]) -> None:
    """Prints one document, as JSON or as text."""
    if as_json:
        write_json(document)
    else:
        write(text(document))
