"""The instance metadata service, version 2, on one machine: a token first, then the credentials of its role.

Run inside the machine's network namespace, on 169.254.169.254 (EC2 User Guide, "Use the Instance Metadata Service").
"""

from __future__ import annotations

import json
import secrets
import sys
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "169.254.169.254"
TOKEN = secrets.token_urlsafe(32)
ROLES = "/latest/meta-data/iam/security-credentials/"


class _Request(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        asked = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self._say(200 if asked else 400, TOKEN if asked else "")

    def do_GET(self) -> None:
        if self.headers.get("X-aws-ec2-metadata-token") != TOKEN:  # as `http_tokens: required` has it
            self._say(401, "")
        elif self.path == ROLES:
            self._say(200, sys.argv[1])
        elif self.path == ROLES + sys.argv[1]:
            self._say(200, json.dumps(_credentials()))
        else:
            self._say(404, "")

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
        "Type": "AWS-HMAC",
        "AccessKeyId": "ASIAEXAMPLE",
        "SecretAccessKey": secrets.token_hex(20),
        "Token": secrets.token_hex(20),
        "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


if __name__ == "__main__":
    ThreadingHTTPServer((ADDRESS, 80), _Request).serve_forever()
