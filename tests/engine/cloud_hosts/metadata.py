"""The metadata service of one instance: a token first, then what its cloud tells it of itself.

Run inside the machine's network namespace: the service's data are the program's one argument, as JSON.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """token: the header that carries it. refusal: the status of a request without it. answers: by path."""

    address: str
    token: str
    refusal: int
    answers: Mapping[str, str]


def credentials(**own: str) -> str:
    """The answer to who an instance is, with a cloud's own names for the keys."""
    until = datetime.now(UTC) + timedelta(hours=6)
    return json.dumps({"Code": "Success", "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"), **own})


class Service(ThreadingHTTPServer):
    """Answers as a cloud does that requires tokens (`http_tokens: required`)."""

    def __init__(self, told: Metadata) -> None:
        super().__init__((told.address, 80), _Request)
        self.told, self.token = told, secrets.token_urlsafe(32)


class _Request(BaseHTTPRequestHandler):
    @property
    def _service(self) -> Service:
        return cast(Service, self.server)

    def do_PUT(self) -> None:
        asked = self.path == "/latest/api/token" and self.headers.get(f"{self._service.told.token}-ttl-seconds")
        self._say(200 if asked else 400, self._service.token if asked else "")

    def do_GET(self) -> None:
        told = self._service.told
        if self.headers.get(told.token) != self._service.token:
            self._say(told.refusal, "")
        else:
            self._say(200 if self.path in told.answers else 404, told.answers.get(self.path, ""))

    def _say(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""


if __name__ == "__main__":
    Service(Metadata(**json.loads(sys.argv[1]))).serve_forever()
