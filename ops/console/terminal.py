"""What the commands share at a terminal: their common options, a question, and the only ways to print.

Whatever is printed goes through here, so the terminal obeys nothing that a node, a cloud or a file's name says: no
escape sequence, no markup, no text that runs backwards.
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
    str | None, typer.Option(metavar="CNY=7.10@DAY", help="what a dollar was worth on a day, to compare currencies")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


class Screen(Console):
    """A console on which texts are texts. What Rich itself needs of the terminal, it still gets."""

    def __init__(self, file: IO[str] | None = None, **options: Any) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False, soft_wrap=True, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def write(text: str, *, error: bool = False) -> None:
    """Prints lines of text."""
    print(printable(text), file=sys.stderr if error else sys.stdout)


def write_json(document: object) -> None:
    """Prints a document for a machine, in which every character beyond ASCII is spelled out."""
    write(json.dumps(document, indent=1))


def write_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints what Python would of an error that nobody has caught (`sys.excepthook`)."""
    write("".join(traceback.format_exception(kind, error, trace)), error=True)


def confirmed(question: str) -> bool:
    """A person's yes. Raises CommandError where there is nobody to ask."""
    try:
        return typer.confirm(printable(question), err=True)
    except typer.Abort:
        write("", error=True)
        raise CommandError("no answer: --yes says yes beforehand", code=2) from None


def show(document: dict[str, Any], as_json: bool, text: Callable[[dict[str, Any]], str]) -> None:
    """One document, for a machine or for a person."""
    if as_json:
        write_json(document)
    else:
        write(text(document))
