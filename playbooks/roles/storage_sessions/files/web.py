"""Requests to the cloud's metadata service and to STS: bounded in bytes and time, past no proxy, following no redirect.

What answers is not trusted to be what it should be: whatever it says is used as asked for or ends in one line.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException
from urllib.parse import urlsplit

CLOUD_SECONDS = 5.0  # for each answer
MOST_BYTES = 64 * 1024  # of an answer
CODE = re.compile(rb'<Code>(\w{1,100})</Code>|"Code"\s*:\s*"([\w.]{1,100})"')  # of an error, in XML or JSON


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry a signed request, and the session token of the node in it, to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)


def fetch(url: str, method: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
    """The beginning of the answer. Raises OSError, with the code of the error that the cloud gives."""
    host = urlsplit(url).netloc
    try:
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        with OPENER.open(request, timeout=CLOUD_SECONDS) as response:
            return response.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            code = CODE.search(error.read(MOST_BYTES))
        name = (code[1] or code[2]).decode() if code else ""
        raise OSError(f"{host} answers {error.code} {name}".strip()) from None
    except (HTTPException, ValueError):  # also a text of its that no header or address can hold
        raise OSError(f"{host} cannot be asked, or answers no HTTP") from None


def word(data: bytes, source: str) -> str:
    """An answer of one word. Raises OSError."""
    if not re.fullmatch(rb"[!-~]+", data.strip()):
        raise OSError(f"{source} has answered what is no word of ASCII")
    return data.strip().decode()


def texts(document: object, names: Iterable[str], source: str) -> dict[str, str]:
    """The fields of a document that are needed, none of them empty. Raises OSError."""
    fields = document if isinstance(document, dict) else {}
    values = {name: fields.get(name) for name in names}
    wrong = [name for name, text in values.items() if not (isinstance(text, str) and re.fullmatch(r"[ -~]+", text))]
    if wrong:
        raise OSError(f"{source} has answered without {', '.join(wrong)}")
    return values


def json_object(data: bytes, source: str) -> dict:
    """Raises OSError."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise OSError(f"{source} has answered what is no JSON object")
    return document
