"""What a kubelet would say of its containers' output: kwok plays nodes, but their containers never ran."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Kubelet:
    """Answers the API server's /containerLogs/<namespace>/<pod>/<container>. lines: by how a pod's name begins."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}
        self.port = 0

    def said(self, pod: str) -> bytes:
        found = next((lines for name, lines in self.lines.items() if pod.startswith(name)), [])
        return "".join(f"{line}\n" for line in found).encode()

    @classmethod
    @contextmanager
    def serving(cls, pair: Path) -> Iterator[Kubelet]:
        """pair: of a certificate and its key, without .crt and .key."""
        kubelet = cls()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _, kind, _, pod, *_ = self.path.split("?")[0].split("/")
                self.send_response(200 if kind == "containerLogs" else 404)
                self.end_headers()
                self.wfile.write(kubelet.said(pod))

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Says nothing of what went well."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secured.load_cert_chain(pair.with_suffix(".crt"), pair.with_suffix(".key"))
        server.socket = secured.wrap_socket(server.socket, server_side=True)
        kubelet.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield kubelet
        finally:
            server.shutdown()
            server.server_close()
