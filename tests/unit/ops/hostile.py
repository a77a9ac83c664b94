"""What a node that somebody has taken over may send in the place of a JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator

ESCAPE = "\x1b[2J\x1b[1A  node-2  ready\n\u202e"

# In the place of any value of a document: of other types, other sizes, other depths.
VALUES: list[object] = [
    None, True, False, 0, -1, 1e308, float("nan"), float("inf"), 10**4000, "", "x" * 10**5, ESCAPE, "\x00", [], {},
    [[]], {"a": {}}, [None] * 10**4, {str(i): i for i in range(10**4)}, "{{ lookup('pipe', 'id') }}", ["ready"], 0.5,
    "no",
]  # fmt: skip
TEXTS = [
    b"", b" ", b"null", b"true", b"1", b'"ready"', b"[]", b"{}", b"nan", b"NaN", b"-Infinity", b"{", b"}", b"<html>",
    b'{"ready": true}', b'{"ready": true, "checks": []}', b'{"ready": true, "ready": false}', b'{"ready": "\\ud800"}',
    b"\xff\xfe\x00", b"\x00" * 1000, b"\xef\xbb\xbf{}", b'{"ready": 1e999}', b'{"ready": ' + b"9" * 5000 + b"}",
    b"[" * 10**5, b'{"a":' * 10**5, b'{"ready": true, "checks": ' + b"[" * 10**4 + b"]" * 10**4 + b"}",
    b"cat: ready.json: No such file", b"\x1b[2Jready", b" " * 10**6, "\ud7ff\u202eready".encode(),
]  # fmt: skip


def changed(document: object, value: object) -> Iterator[object]:
    """The document with `value` at each of its places in turn, and without each of its keys."""
    yield value
    if isinstance(document, dict):
        for key, held in document.items():
            yield {other: item for other, item in document.items() if other != key}
            yield from ({**document, key: inner} for inner in changed(held, value))
    elif isinstance(document, list):
        for i, held in enumerate(document):
            yield from ([*document[:i], inner, *document[i + 1 :]] for inner in changed(held, value))


def in_place_of(document: object) -> list[bytes]:
    """Every one of them, once."""
    documents = (json.dumps(variant).encode() for value in VALUES for variant in changed(document, value))
    whole = json.dumps(document).encode()
    return list(dict.fromkeys([*TEXTS, whole[:-1], whole + b"x", json.dumps(document).encode("utf-16"), *documents]))
