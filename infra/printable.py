"""Texts of others as a terminal shows them: what it would obey instead is replaced.

A node, a cloud or a file's name with escape sequences in it could write over the lines above, and with line breaks it
could add some that we never wrote.
"""

from __future__ import annotations

import unicodedata

OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control characters, formats such as U+202E, halves of pairs, line separators
PUT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """A text of any number of lines, of which only line feeds and tabs are obeyed."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text  # most texts, by far
    return "".join(PUT if unicodedata.category(each) in OBEYED and each not in "\n\t" else each for each in text)


def one_line(text: str) -> str:
    """A text of others within a line of ours."""
    return printable(" ".join(text.splitlines())).replace("\t", " ")


def escaped(text: str) -> str:
    """The text in one line, with nothing lost: what is not printed as itself (control characters, line breaks, marks of
    direction) stands as an escape such as `\\n`. For reviews, which must show what differs."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
