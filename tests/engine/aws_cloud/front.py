"""The HTTP front: boto3's own requests on the loopback, answered from the cloud's file.

Requests are read and answers written by moto's parsers and serializers, which work from botocore's service models: the
wire formats are the real ones, and only what is said is ours.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

from cloud_provider.kinds import RefusedError
from cloud_provider.store import Store
from moto.core import parse, serialize
from moto.core.model import ServiceModel
from moto.core.utils import get_service_model

from aws_cloud.answers import View
from aws_cloud.answers_ec2 import EC2_ANSWERS
from aws_cloud.answers_fleets import FLEET_ANSWERS
from aws_cloud.answers_offers import OFFER_ANSWERS
from aws_cloud.answers_services import SERVICE_ANSWERS

ANSWERS = {**EC2_ANSWERS, **FLEET_ANSWERS, **OFFER_ANSWERS, **SERVICE_ANSWERS}
SCOPE = re.compile(r"Credential=[^/]+/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")  # of Signature Version 4
NAMES = {
    "servicequotas": "service-quotas",
    "tagging": "resourcegroupstaggingapi",
}  # services whose model has another name than their signatures


class Front(ThreadingHTTPServer):
    """Serves one cloud until it is shut down. url: for AWS_ENDPOINT_URL."""

    daemon_threads = True

    def __init__(self, file: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.store = Store(file)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Request(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        scope = SCOPE.search(self.headers["Authorization"])
        assert scope is not None
        values = dict(parse_qsl(body.decode(), keep_blank_values=True))
        name = self.headers.get("X-Amz-Target", "").rpartition(".")[2] or values["Action"]
        operation = _model(scope["service"]).operation_model(name)
        protocol = str(operation.service_model.resolved_protocol)
        sent = {
            "body": body,
            "headers": self.headers,
            "method": "POST",
            "url_path": self.path,
            "url_params": {},
            "values": values,
        }
        asked = parse.PROTOCOL_PARSERS[protocol](operation).parse(cast(parse.RequestDict, sent))
        answer = self._answer(scope["service"], name, asked, scope["region"])
        told = serialize.get_serializer_class(scope["service"], protocol)(operation).serialize(answer)
        self._send(told)

    def _answer(self, service: str, name: str, asked: dict[str, Any], region: str) -> Any:
        store = cast(Front, self.server).store
        store.called(f"{service}:{name}", "")
        answer = ANSWERS.get((service, name))
        if answer is None:
            return RefusedError("NotImplemented", f"the stand-in cloud does not answer {service} {name}")
        try:
            return answer(View(store, region), asked)
        except RefusedError as refused:
            return refused

    def _send(self, told: serialize.ResponseDict) -> None:
        body = told["body"].encode() if isinstance(told["body"], str) else told["body"]
        self.send_response(told["status_code"])
        for name, value in {**told["headers"], "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing: each call is a row of the cloud's file."""


@cache
def _model(signing_name: str) -> ServiceModel:
    """The service that signs by this name."""
    return get_service_model(NAMES.get(signing_name, signing_name))


@contextmanager
def serving(file: Path) -> Iterator[str]:
    """Serves a cloud in a thread of this process; yields the front's address."""
    front = Front(file)
    thread = threading.Thread(target=front.serve_forever, daemon=True)
    thread.start()
    try:
        yield front.url
    finally:
        front.shutdown()
        front.server_close()
        thread.join()


if __name__ == "__main__":
    served = Front(Path(sys.argv[1]))
    print(served.url, flush=True)
    served.serve_forever()
