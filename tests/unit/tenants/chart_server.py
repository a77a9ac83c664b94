"""A chart repository and a registry on this computer, over HTTPS with a certificate of its own."""

from __future__ import annotations

import io
import ssl
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Site:
    """What is answered, by path: the status, the headers, the body. seen: the headers of the requests of each path."""

    trust: ssl.SSLContext
    answers: dict[str, tuple[int, Mapping[str, str], bytes]] = field(default_factory=dict)
    seen: dict[str, Mapping[str, str]] = field(default_factory=dict)
    port: int = 0
    plain_port: int = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def puts(self, path: str, body: bytes, *, status: int = 200, **headers: str) -> None:
        self.answers[path] = (status, {key.replace("_", "-"): value for key, value in headers.items()}, body)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *others: object) -> None:
        self.site = site
        super().__init__(*others)  # pyright: ignore[reportArgumentType]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.site.seen[path] = {key.lower(): value for key, value in self.headers.items()}
        status, headers, body = self.site.answers.get(path, (404, {}, b""))
        challenge = headers.get("WWW-Authenticate")
        if challenge and "Authorization" in self.headers:
            status = 200
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base class)
        """Says nothing."""


@contextmanager
def served(folder: Path) -> Iterator[Site]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-days", "2", "-subj", "/CN=charts", "-addext", "subjectAltName=IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = ["openssl", "req", "-x509", *curve, *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    site = Site(ssl.create_default_context(cafile=str(certificate)))
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    with ExitStack() as stack:
        secure, plain = (ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, site)) for _ in range(2))
        secure.socket = ours.wrap_socket(secure.socket, server_side=True)
        for server in (secure, plain):
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        site.port, site.plain_port = secure.server_address[1], plain.server_address[1]
        yield site


def chart_archive(name: str, version: str, *, padding: int = 0) -> bytes:
    """A Helm chart, as `helm package` makes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        files = {
            "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n",
            "values.yaml": "{}\n" + "#" * padding,
            "templates/pod.yaml": "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: a/b:1}]}\n",
        }
        for path, text in files.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()
