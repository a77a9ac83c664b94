"""The metadata service of one machine: a token first, then what boot.sh asks for.

Run inside the machine's network namespace (ECS User Guide, "Instance metadata" and "Attach an instance RAM role").
"""

from __future__ import annotations

import json
import secrets
import sys
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "100.100.100.200"
TOKEN, STS = secrets.token_urlsafe(32), "CAIS-standin"


class _Request(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        asked = self.path == "/latest/api/token" and self.headers.get("X-aliyun-ecs-metadata-token-ttl-seconds")
        self._say(200 if asked else 400, TOKEN if asked else "")

    def do_GET(self) -> None:
        role, address = sys.argv[1:]
        told = {
            f"/latest/meta-data/ram/security-credentials/{role}": json.dumps(_credentials()),
            "/latest/meta-data/private-ipv4": address,
        }
        if self.headers.get("X-aliyun-ecs-metadata-token") != TOKEN:  # as `http_tokens: required` has it
            self._say(403, "")
        else:
            self._say(200 if self.path in told else 404, told.get(self.path, ""))

    def _say(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""


def _credentials() -> dict[str, str]:
    until = datetime.now(UTC) + timedelta(hours=6)
    return {
        "Code": "Success",
        "AccessKeyId": "STS.standin",
        "AccessKeySecret": secrets.token_hex(20),
        "SecurityToken": STS,
        "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


if __name__ == "__main__":
    ThreadingHTTPServer((ADDRESS, 80), _Request).serve_forever()
