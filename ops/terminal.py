"""What the commands share at a terminal: their common options, a question, and a document shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from ops.failure import Failure

Stack = Annotated[str, typer.Argument(metavar="STACK", help="the stack: stacks/Pulumi.STACK.yaml", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]
Rate = Annotated[
    str | None, typer.Option(metavar="CNY=7.10@DAY", help="what a dollar was worth on a day, to compare currencies")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


def confirmed(question: str) -> bool:
    """A person's yes. Raises Failure where there is nobody to ask."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        print(file=sys.stderr)
        raise Failure("no answer: --yes says yes beforehand", code=2) from None


def show(document: dict[str, Any], as_json: bool, text: Callable[[dict[str, Any]], str]) -> None:
    """One document, for a machine or for a person."""
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        Console(highlight=False, markup=False, soft_wrap=True).print(text(document))
