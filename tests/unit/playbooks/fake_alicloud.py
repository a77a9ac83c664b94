"""A metadata service and an STS as Alibaba Cloud has them, which answer only what is signed as its own SDK signs it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

from alibabacloud_tea_openapi.utils import Utils

TOKEN, ALGORITHM = "metadata-token", "ACS3-HMAC-SHA256"
NODE_ROLE = {"AccessKeyId": "STS.NODE", "AccessKeySecret": "of the node", "SecurityToken": "token of the node"}
CLOCK_SECONDS = 900


@dataclass
class FakeAlicloud:
    """assumed: the forms of every request that STS has answered. refused: how many it has not. nonces: of all."""

    address: str = ""
    assumed: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0
    nonces: set[str] = field(default_factory=set)
    denies: str = ""
    says: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def policy_of(self, key: str) -> dict[str, Any]:
        """The session policy behind an access key."""
        return json.loads(self.assumed[int(key.removeprefix("STS.SESSION")) - 1]["Policy"])


@contextmanager
def serving() -> Iterator[FakeAlicloud]:
    fake = FakeAlicloud()

    class Answers(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            known = self.path == "/latest/api/token" and self.headers["X-aliyun-ecs-metadata-token-ttl-seconds"]
            self.say(200 if known else 404, TOKEN)

        def do_GET(self) -> None:
            path = self.path.removeprefix("/latest/meta-data/ram/security-credentials/")
            if self.headers["X-aliyun-ecs-metadata-token"] != TOKEN:
                self.say(403, "")
            else:
                self.say(200, {"": "nodes", "nodes": json.dumps({"Code": "Success", **NODE_ROLE})}.get(path, ""))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.headers = {key.lower(): value for key, value in self.headers.items()}
            if wrong := fake.denies or problem(fake, body):
                fake.refused += 1
                self.say(403, json.dumps({"RequestId": "1", "Code": wrong, "Message": "no"}))
                return
            fake.assumed.append({key: value for key, (value,) in parse_qs(body.decode()).items()})
            key = f"STS.SESSION{len(fake.assumed)}"
            until = (datetime.now(UTC) + timedelta(seconds=3600)).strftime("%Y-%m-%dT%H:%M:%SZ")
            given = {"AccessKeyId": key, "AccessKeySecret": "s", "SecurityToken": "t", "Expiration": until}
            self.say(200, fake.says or json.dumps({"RequestId": "1", "Credentials": given}))

        def say(self, code: int, text: str) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    fake.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def problem(fake: FakeAlicloud, body: bytes) -> str:
    """The code of the error that a request is refused with; empty for one that is sound."""
    headers = fake.headers
    signed = ("content-type", "host", *(name for name in headers if name.startswith("x-acs-")))
    again = SimpleNamespace(
        method="POST", pathname="/", query={}, headers={name: headers[name] for name in signed if name in headers}
    )
    digest = hashlib.sha256(body).hexdigest()
    secret = NODE_ROLE["AccessKeySecret"]
    said = Utils.get_authorization(again, ALGORITHM, digest, NODE_ROLE["AccessKeyId"], secret)
    moment = datetime.strptime(headers["x-acs-date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    if abs((datetime.now(UTC) - moment).total_seconds()) > CLOCK_SECONDS:
        return "InvalidTimeStamp.Expired"
    if headers["x-acs-signature-nonce"] in fake.nonces:
        return "SignatureNonceUsed"
    fake.nonces.add(headers["x-acs-signature-nonce"])
    sound = (
        headers["authorization"] == said
        and headers["x-acs-content-sha256"] == digest
        and headers["x-acs-security-token"] == NODE_ROLE["SecurityToken"]
        and (headers["x-acs-action"], headers["x-acs-version"]) == ("AssumeRole", "2015-04-01")
    )
    return "" if sound else "SignatureDoesNotMatch"
