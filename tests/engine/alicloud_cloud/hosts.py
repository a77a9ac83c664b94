"""Alibaba Cloud as its machines see it: ECS's instances, their security groups, OSS and the metadata service.

Of a request to OSS the form of its signature is checked, not the signature (OSS API, "Include signatures of version 4
in the Authorization header"). Metadata: ECS User Guide, "Instance metadata" and "Attach an instance RAM role".
"""

from __future__ import annotations

import re
import secrets
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import cast

from cloud_hosts import hosts, ruleset
from cloud_hosts.hosts import PEOPLE, PERSON, Hosts
from cloud_hosts.land import Instance
from cloud_hosts.metadata import Metadata, credentials
from cloud_provider.store import Row, Store

from alicloud_cloud import front
from alicloud_cloud.kinds import INSTANCE, hostname, type_of

KEY_PAIR, OBJECT, RULE = (
    type_of("ecs", "EcsKeyPair"),
    type_of("oss", "BucketObject"),
    type_of("ecs", "SecurityGroupRule"),
)
ROLES, STS = "/latest/meta-data/ram/security-credentials/", "CAIS-standin"
SIGNED = re.compile(r"OSS4-HMAC-SHA256 Credential=[\w.]+/\d{8}/[\w-]+/oss/aliyun_v4_request, Signature=[0-9a-f]{64}")
__all__ = ["PEOPLE", "PERSON", "following"]


class Land:
    """See `cloud_hosts.land`."""

    user = "ecs-user"

    @property
    def packages(self) -> Mapping[str, Mapping[str, str]]:
        return {}

    def router(self, cidr: str) -> str:
        """The gateway of the last vSwitch, whose last three addresses are the cloud's own."""
        return str(ip_network(cidr)[-3])

    def running(self, store: Store) -> dict[str, Row]:
        return {row.id: row for row in store.of(INSTANCE)}

    def instance(self, store: Store, row: Row) -> Instance:
        pairs = store.rows("type = ? and id = ?", KEY_PAIR, row.inputs["keyName"])
        return Instance(
            name=hostname(row.id),
            address=row.outputs["primaryIpAddress"],
            keys=tuple(each.inputs["publicKey"] for each in pairs),
            script=b64decode(row.inputs["userData"]),
            role=row.inputs["roleName"],
        )

    def metadata(self, born: Instance) -> Metadata:
        keys = {"AccessKeySecret": secrets.token_hex(20), "SecurityToken": STS}
        answers = {
            ROLES + born.role: credentials(AccessKeyId="STS.standin", **keys),
            "/latest/meta-data/private-ipv4": born.address,
        }
        return Metadata(address="100.100.100.200", token="X-aliyun-ecs-metadata-token", refusal=403, answers=answers)

    def public_address(self, store: Store, row: Row) -> str:
        return front.public_address(store, row)

    def firewall(self, store: Store, row: Row) -> str:
        rules = [
            each.inputs for each in store.of(RULE) if each.inputs["securityGroupId"] in row.inputs["securityGroups"]
        ]
        ingress = [_line(each, "saddr") for each in rules if each["type"] == "ingress"]
        egress = [_line(each, "daddr") for each in rules if each["type"] == "egress"]
        return ruleset.written(ingress, egress)

    @contextmanager
    def objects(self, router: str) -> Iterator[tuple[Mapping[str, str], Callable[[Store], None]]]:
        server = _Oss(router)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield {"GPUFLEET_OSS": f"http://{router}:443/{{bucket}}"}, server.take
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _line(rule: Mapping[str, str], side: str) -> str:
    peer = "" if rule["cidrIp"] == "0.0.0.0/0" else f"ip {side} {rule['cidrIp']} "
    if rule["ipProtocol"] == "all":
        return f"{peer}accept"
    first, _, last = rule["portRange"].partition("/")
    return f"{peer}{rule['ipProtocol']} dport {first}-{last} accept"


class _Oss(ThreadingHTTPServer):
    """The objects that the provider was told to put into buckets, by their path."""

    daemon_threads = True

    def __init__(self, router: str) -> None:
        super().__init__((router, 443), _Request)
        self.files: dict[str, str] = {}

    def take(self, store: Store) -> None:
        self.files |= {f"/{row.inputs['bucket']}/{row.inputs['key']}": row.inputs["source"] for row in store.of(OBJECT)}


class _Request(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        file = cast(_Oss, self.server).files.get(self.path)
        signed = SIGNED.fullmatch(self.headers.get("Authorization", ""))
        known = self.headers.get("x-oss-security-token") == STS
        content = Path(file).read_bytes() if file and signed and known else b""
        self.send_response(200 if content else 404 if signed and known else 403)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""


def following(store: Store, folder: Path, cidr: str) -> AbstractContextManager[Hosts]:
    """Machines for the instances of an Alibaba Cloud (see `cloud_hosts.hosts`)."""
    return hosts.following(Land(), store, folder, cidr)
