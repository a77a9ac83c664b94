"""Answers over HTTPS and nothing else, in bounded bytes and time, wherever redirects lead."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from ops.clock import REAL, Clock

ANSWER_SECONDS, WHOLE_SECONDS = 20.0, 300.0
PIECE_BYTES = 2**16
MOST_REDIRECTS = 5


class FetchError(Exception):
    """Why there is no answer, in one line."""


@dataclass(frozen=True)
class Answer:
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Web:
    """Fetches over HTTPS. trust: whose certificates are accepted, None for those that this computer trusts."""

    trust: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    clock: Clock = REAL

    def get(self, url: str, most_bytes: int) -> Answer:
        """Raises FetchError."""
        if (problem := refusal(url)) is not None:
            raise FetchError(problem)
        opener = _opener(self.trust)
        try:
            with opener.open(urllib.request.Request(url, headers=dict(self.headers)), timeout=ANSWER_SECONDS) as answer:
                return Answer(
                    _read(answer.read, url, most_bytes, self.clock), {k.lower(): v for k, v in answer.headers.items()}
                )
        except urllib.error.HTTPError as error:
            with error:
                raise HttpStatusError(url, error.code, error.headers.get("WWW-Authenticate") or "") from None
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", error)
            raise FetchError(f"{url} cannot be fetched: {' '.join(str(why).split())}") from None

    def with_headers(self, **headers: str) -> Web:
        return replace(self, headers={**self.headers, **headers})


class HttpStatusError(FetchError):
    """An answer that is an error. challenge: what a registry asks for (RFC 9110, WWW-Authenticate)."""

    def __init__(self, url: str, code: int, challenge: str) -> None:
        super().__init__(f"{url} cannot be fetched: the server answers {code}")
        self.code, self.challenge = code, challenge


def refusal(url: str) -> str | None:
    """Why an address is not fetched from; None where it is."""
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return f"{url} is no address"
    return None if parts.scheme == "https" and whole else f"{url} is not fetched: only https:// is"


class _OverHttps(urllib.request.HTTPRedirectHandler):
    """Follows to HTTPS alone, and tells no other host what was meant for this one."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if (problem := refusal(newurl)) is not None:
            raise OSError(f"it redirects, and {problem}")
        followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        if followed is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            followed.remove_header("Authorization")
        return followed


def _opener(trust: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """Without the handlers of files, FTP, data and plain HTTP that urllib would add."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(context=trust or ssl.create_default_context()),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _OverHttps(),
    ):
        opener.add_handler(handler)
    return opener


def _read(read: Callable[[int], bytes], url: str, most_bytes: int, clock: Clock) -> bytes:
    body, end = bytearray(), clock.monotonic() + WHOLE_SECONDS
    while piece := read(PIECE_BYTES):
        body += piece
        if len(body) > most_bytes:
            raise FetchError(f"{url} is larger than {most_bytes} bytes")
        if clock.monotonic() > end:
            raise FetchError(f"{url} has not come within {WHOLE_SECONDS:.0f} s")
    return bytes(body)
