"""Values of a stack file as a message names them: never more than a line of one, and never a private key."""

from __future__ import annotations

from typing import Any

from infra.spec.public_key import looks_private

LENGTH = 40


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
