"""A metadata service and an STS as AWS has them, which answer only what is signed as botocore signs it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REGION, TOKEN = "us-east-1", "imds-token"
NODE_ROLE = {"AccessKeyId": "ASIANODE", "SecretAccessKey": "of the node", "Token": "token of the node"}
ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>secret of {key}</SecretAccessKey>
<SessionToken>token of {key}</SessionToken><Expiration>{until}</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""
REFUSAL = "<ErrorResponse><Error><Code>{}</Code></Error></ErrorResponse>"


@dataclass
class FakeAws:
    """assumed: the forms of every request that STS has answered. refused: how many it has not."""

    address: str = ""
    assumed: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0
    session_seconds: float = 3600
    pause: threading.Event = field(default_factory=threading.Event)
    denies: str = ""

    def policy_of(self, key: str) -> dict[str, Any]:
        """The session policy behind an access key."""
        return json.loads(self.assumed[int(key.removeprefix("ASIASESSION")) - 1]["Policy"])


@contextmanager
def serving() -> Iterator[FakeAws]:
    fake = FakeAws()
    fake.pause.set()

    class Answers(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            known = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            self.say(200 if known else 404, TOKEN)

        def do_GET(self) -> None:
            path = self.path.removeprefix("/latest/meta-data/iam/security-credentials/")
            if self.headers["X-aws-ec2-metadata-token"] != TOKEN:
                self.say(401, "")
            else:
                self.say(200, {"": "nodes-role", "nodes-role": json.dumps(NODE_ROLE)}.get(path, ""))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.pause.wait(10)
            if fake.denies or self.headers["authorization"] != signature(self, body):
                fake.refused += 1
                self.say(403, REFUSAL.format(fake.denies or "SignatureDoesNotMatch"))
                return
            fake.assumed.append({key: value for key, (value,) in parse_qs(body.decode()).items()})
            until = datetime.now(UTC) + timedelta(seconds=fake.session_seconds)
            key = f"ASIASESSION{len(fake.assumed)}"
            self.say(200, ANSWER.format(key=key, until=until.strftime("%Y-%m-%dT%H:%M:%SZ")))

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
        fake.pause.set()
        server.shutdown()
        server.server_close()


def signature(request: BaseHTTPRequestHandler, body: bytes) -> str:
    """What botocore puts in the header `authorization` for the same request, made by the node's role."""
    names = ("content-type", "host", "x-amz-date", "x-amz-security-token")
    again = AWSRequest("POST", f"http://{request.headers['host']}/", data=body)
    for name in names[:2]:
        again.headers[name] = request.headers[name]
    again.headers["X-Amz-Security-Token"] = NODE_ROLE["Token"]
    again.headers["X-Amz-Date"] = again.context["timestamp"] = request.headers["x-amz-date"]
    role = Credentials(NODE_ROLE["AccessKeyId"], NODE_ROLE["SecretAccessKey"], NODE_ROLE["Token"])
    signer = SigV4Auth(role, "sts", REGION)
    text = signer.string_to_sign(again, signer.canonical_request(again))
    scope = f"Credential={signer.scope(again)}, SignedHeaders={';'.join(names)}"
    return f"AWS4-HMAC-SHA256 {scope}, Signature={signer.signature(text, again)}"
