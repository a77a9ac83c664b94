"""A metadata service or an STS that lies: a line for the login that waits, and no request goes elsewhere."""

from __future__ import annotations

import json
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from storage_service import FILES, PYTHON

MOST_MIB = 50
UNTIL = "2030-01-01T00:00:00Z"
ROLES = {
    "aws": {"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c"},
    "alicloud": {"AccessKeyId": "a", "AccessKeySecret": "b", "SecurityToken": "c"},
}
SESSIONS = {
    "aws": "<R><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey>"
    f"<SessionToken>c</SessionToken><Expiration>{UNTIL}</Expiration></Credentials></R>",
    "alicloud": json.dumps({"Credentials": {**ROLES["alicloud"], "Expiration": UNTIL}}),
}
STAGES = ("token", "name", "role", "session")
ENTITIES = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(9))
WRONG = (None, 1, [], "", "a\nb", "\u202e")
BODIES = [
    *(b"", b"\0", b"\xff\xfe\xff", b"\x1b[2J", b"a\r\nX-Injected: b", b"a b", b"../../../etc", b"?x#y", b"http://h/"),
    *(b"null", b"[]", b"{}", b'"text"', b"1e999", b"[" * 60_000, b'{"a":' * 12_000, b'{"Credentials": [1]}'),
    *(json.dumps({**role, key: value}).encode() for role in ROLES.values() for key in role for value in WRONG),
    *(b"<", b"<a/>", b"<AccessKeyId>a</AccessKeyId>", b"<a>" * 20_000, b'<?xml version="1.0" encoding="none"?><a/>'),
    f'<!DOCTYPE a [<!ENTITY e0 "x">{ENTITIES}]><R><AccessKeyId>&e9;</AccessKeyId></R>'.encode(),
    *(b"x" * 10_000_000, b"<Code>" + b"C" * 200 + b"</Code>"),
]
CLIENT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import grants, importlib
cloud, address, count = importlib.import_module(sys.argv[2]), sys.argv[3], int(sys.argv[4])
grant = grants.Grant("ada", (grants.Place("data", "tenants/ada/", "write"),))
outcomes = []
for case in range(count):
    here = f"{address}/{case}"
    settings = {"role": "arn:aws:iam::1:role/r", "region": "us-east-1", "node": "n", "metadata": here, "sts": here}
    try:
        outcomes.append(["session", json.dumps(cloud.session(settings, grant, 3600))])
    except (OSError, ValueError) as error:
        outcomes.append(["refused", str(error)])
    except Exception as error:
        outcomes.append([type(error).__name__, str(error)])
status = open("/proc/self/status").read().split()
print(json.dumps([outcomes, int(status[status.index("VmHWM:") + 1]) / 1024]))
"""


def answer(code: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} x", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def cases(elsewhere: str) -> list[tuple[str, bytes]]:
    """(the stage that lies, what it sends)."""
    sent = [answer(code, body) for body in BODIES for code in (200, 403)]
    sent += [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 x\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 999999 x\r\n\r\n",
    ]
    sent += [answer(200, b"ab").replace(b"Length: 2", length) for length in (b"Length: 9", b"Length: -1", b"Length: x")]
    sent += [answer(code, b"", f"Location: {elsewhere}/stolen") for code in (301, 302, 303, 307, 308)]
    return [(stage, raw) for stage in STAGES for raw in sent]


@contextmanager
def lying(cloud: str) -> Iterator[tuple[str, list[tuple[str, bytes]], list[str]]]:
    """The address, the cases, and the paths of requests that belong to no case."""
    elsewhere: list[str] = []
    lies: list[tuple[str, bytes]] = []
    good = {"token": b"t", "name": b"r", "role": json.dumps(ROLES[cloud]).encode(), "session": SESSIONS[cloud].encode()}

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, path, _ = self.rfile.readline().decode().split(" ", 2)
            length = 0
            while (line := self.rfile.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            self.rfile.read(length)
            case = path.split("/")[1]
            if not case.isdecimal():
                elsewhere.append(path)
                return
            end = path.endswith("/security-credentials/")
            stage = {"PUT": "token", "POST": "session"}.get(method) or ("name" if end else "role")
            liar, raw = lies[int(case)]
            with suppress(OSError):  # it has read as much as it wants to
                self.wfile.write(raw if liar == stage else answer(200, good[stage]))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 64

    with Server(("127.0.0.1", 0), Connection) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        lies += cases(address)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield address, lies, elsewhere
        finally:
            server.shutdown()


@pytest.mark.parametrize("cloud", ROLES)
def test_whatever_a_cloud_says_ends_in_one_line_and_leads_nowhere_else(cloud: str) -> None:
    with lying(cloud) as (address, lies, elsewhere):
        ended = subprocess.run(
            [PYTHON, "-B", "-c", CLIENT, FILES, cloud, address, str(len(lies))],
            capture_output=True, text=True, check=True, timeout=600,
        )  # fmt: skip
    outcomes, mib = json.loads(ended.stdout)
    print(f"{cloud}: {len(lies)} hostile answers, {mib:.1f} MiB")

    assert elsewhere == []
    assert [outcome for outcome in outcomes if outcome[0] not in ("session", "refused")] == []
    assert [outcome for outcome in outcomes if not outcome[1].isprintable()] == []
    assert {outcome[1] for outcome in outcomes if outcome[0] == "session"} <= {session(cloud)}
    assert len(lies) >= 200
    assert mib < MOST_MIB


def session(cloud: str) -> str:
    names: dict[str, Any] = {"AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c", "Expiration": UNTIL}
    assert cloud in ROLES
    return json.dumps({"Version": 1, **names})
