"""AWS as its machines see it: EC2's instances, their security groups, S3 and the metadata service.

Source: EC2 User Guide, "Use the Instance Metadata Service".
"""

from __future__ import annotations

import secrets
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import boto3
from cloud_hosts import hosts
from cloud_hosts.hosts import PEOPLE, PERSON, Hosts
from cloud_hosts.land import Instance
from cloud_hosts.metadata import Metadata, credentials
from cloud_provider.store import Row, Store
from moto.server import ThreadedMotoServer

from aws_cloud import firewall
from aws_cloud.kinds_ec2 import INSTANCE, TEMPLATE
from aws_cloud.kinds_services import BUCKET, OBJECT

KEY_PAIR = "aws:ec2/keyPair:KeyPair"
ROLES = "/latest/meta-data/iam/security-credentials/"
__all__ = ["PEOPLE", "PERSON", "following"]


class Land:
    """See `cloud_hosts.land`."""

    user = "ubuntu"

    @property
    def packages(self) -> Mapping[str, Mapping[str, str]]:
        """boto3 is that of the lock, in the name of Ubuntu's package."""
        paths = "\n".join(path for path in sys.path if path.endswith("site-packages"))
        return {"python3-boto3": {"/usr/lib/python3/dist-packages/standin-boto3.pth": f"{paths}\n"}}

    def router(self, cidr: str) -> str:
        """AWS's own has it, too (VPC User Guide, "Subnet CIDR reservations")."""
        return str(ip_network(cidr)[1])

    def running(self, store: Store) -> dict[str, Row]:
        return {row.id: row for row in store.of(INSTANCE) if row.state == "running"}

    def instance(self, store: Store, row: Row) -> Instance:
        (template,) = store.rows("type = ? and id = ?", TEMPLATE, row.inputs["launchTemplate"]["id"])
        pairs = store.rows("type = ? and id = ?", KEY_PAIR, row.outputs["keyName"])
        return Instance(
            name=row.outputs["privateDns"].partition(".")[0],
            address=row.outputs["privateIp"],
            keys=tuple(each.inputs["publicKey"] for each in pairs),
            script=b64decode(template.inputs["userData"]),
            role=row.outputs["iamInstanceProfile"],
        )

    def metadata(self, born: Instance) -> Metadata:
        keys = {name: secrets.token_hex(20) for name in ("SecretAccessKey", "Token")}
        whose = credentials(Type="AWS-HMAC", AccessKeyId="ASIAEXAMPLE", **keys)
        answers = {ROLES: born.role, ROLES + born.role: whose}
        return Metadata(address="169.254.169.254", token="X-aws-ec2-metadata-token", refusal=401, answers=answers)

    def public_address(self, store: Store, row: Row) -> str:
        return row.outputs["publicIp"]

    def firewall(self, store: Store, row: Row) -> str:
        return firewall.ruleset(store, row)

    @contextmanager
    def objects(self, router: str) -> Iterator[tuple[Mapping[str, str], Callable[[Store], None]]]:
        url, uploaded = f"http://{router}:443", set[str]()

        def upload(store: Store) -> None:
            """What the provider was told to put into buckets, where machines can fetch it."""
            for row in (*store.of(BUCKET), *store.of(OBJECT)):
                if row.id in uploaded:
                    continue
                uploaded.add(row.id)
                s3 = client(url)
                if row.type == BUCKET:
                    s3.create_bucket(Bucket=row.id)
                else:
                    s3.upload_file(row.inputs["source"]["path"], row.inputs["bucket"], row.inputs["key"])

        moto = ThreadedMotoServer(ip_address=router, port=443, verbose=False)
        moto.start()
        try:
            yield {"AWS_ENDPOINT_URL": url}, upload
        finally:
            moto.stop()


def client(url: str) -> Any:
    """S3 as a test speaks to it."""
    return boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )


def following(store: Store, folder: Path, cidr: str) -> AbstractContextManager[Hosts]:
    """Machines for the instances of an AWS (see `cloud_hosts.hosts`)."""
    return hosts.following(Land(), store, folder, cidr)
