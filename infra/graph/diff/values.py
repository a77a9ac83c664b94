"""What differs between two values: one change for each leaf, with its path.

A policy is compared as the JSON that it is, user data as the script that it is, line by line. Items of a list are
aligned first, so that one more at its front is one addition.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

SECRET = "[secret]"  # what the document holds in place of a secret

Change = dict[str, Any]  # path, before (absent: added), after (absent: removed)


class Lines(list[str]):
    """A text of several lines; its paths end with a line's number."""


def changes(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """The leaves that differ, in the order of keys and items."""
    if before == after:
        return
    old, new = opened(before), opened(after)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _pair([old[key]] if key in old else [], [new[key]] if key in new else [], _below(path, key))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, path)
    else:
        yield _leaf([before], [after], path)


def opened(value: Any) -> Any:
    """A text as what it holds: JSON, or lines, also behind Base64."""
    if not isinstance(value, str):
        return value
    text = _unpacked(value)
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            pass  # a text that only begins like one, such as a reference
    return Lines(text.splitlines()) if "\n" in text else value


def _unpacked(text: str) -> str:
    """The text that a Base64 text of several words holds, else the text itself."""
    try:
        inner = b64decode(text, validate=True).decode()
    except ValueError:
        return text
    return inner if "\n" in inner else text


def _items(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[Change]:
    lines = isinstance(new, Lines)
    keys = [[json.dumps(item, sort_keys=True) for item in side] for side in (old, new)]
    for kind, i, i_end, j, j_end in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for k in range(max(i_end - i, j_end - j)):
            place = j + k if j + k < j_end else i + k
            here = f"{path}:{place + 1}" if lines else f"{path}[{place}]"
            yield from _pair(old[i + k : i_end][:1], new[j + k : j_end][:1], here)


def _pair(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[Change]:
    """Each side is one value, or none."""
    if old and new:
        yield from changes(old[0], new[0], path)
    else:
        yield _leaf(old, new, path)


def _leaf(old: Sequence[Any], new: Sequence[Any], path: str) -> Change:
    """Beside a secret nothing is shown: a value that becomes one is one."""
    hidden = SECRET in (*old, *new)
    sides = zip(("before", "after"), (old, new), strict=True)
    return {"path": path} | {side: SECRET if hidden else value[0] for side, value in sides if value}


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
