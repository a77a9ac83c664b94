"""Texts of others as a message or a terminal shows them.

Values of a stack file are named in no more than a line, and a private key never. What a terminal would obey instead of
showing is replaced: a node, a cloud or a file name with escape sequences in it could write over the lines above.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from infra.spec.public_key import looks_private

LENGTH = 40
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control characters, formats such as U+202E, halves of pairs, line separators
PUT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """A text of any number of lines, without what a terminal obeys: only line feeds and tabs stay as they are."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text  # most texts, by far
    return "".join(PUT if unicodedata.category(each) in OBEYED and each not in "\n\t" else each for each in text)


def one_line(text: str) -> str:
    """A text of others within a line of ours: its lines and gaps become single spaces, so it cannot add a line."""
    return printable(" ".join(text.split()))


def quoted(text: str) -> str:
    """A text in quotes, shortened."""
    if looks_private(text):
        return "a private key"
    return repr(text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…")


def shown(value: Any) -> str:
    """Any value, with its kind where that could be the mistake."""
    if isinstance(value, str):
        return quoted(value) if looks_private(value) else f"the text {quoted(value)}"
    named = {type(None): "empty", dict: "a mapping", list: "a list", bool: str(value).lower()}
    return named.get(type(value), str(value))
