"""Two stacks on two clouds, one going on with what the other keeps: the engine's own reference, and a copy by rclone.

Both clouds are stand-ins; the objects lie on two servers of S3's protocol, a process each.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import alicloud_life
import aws_life
import boto3
import pytest
from alicloud_cloud.kinds import BUCKET as OSS
from aws_cloud.kinds_services import BUCKET
from botocore.exceptions import EndpointConnectionError
from cloud_life import Life
from engine_runner import EngineRunner, until
from kubernetes_cluster.control_plane import free_ports

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(shutil.which("rclone") is None, reason="no rclone is on PATH: https://rclone.org/install"),
]
CHECKPOINT = {"runs/gpt/step-00000020/model.safetensors": b"weights" * 10_000, "runs/gpt/step-00000020/manifest": b"{}"}
KEYS = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}


@dataclass(frozen=True)
class Hybrid:
    """The stack that trains, and the one that serves what was trained."""

    trains: Life
    serves: Life

    def copy(self, theirs: str, ours: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`gpufleet copy` between two servers. OSS knows a bucket by its host's name: ours is asked as a proxy."""
        here = {
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "RCLONE_CONFIG_FROM_ENDPOINT": theirs,
            "RCLONE_CONFIG_FROM_PROVIDER": "Other",  # whose buckets are paths: nobody answers to bucket.127.0.0.1
            "RCLONE_CONFIG_TO_ENDPOINT": "http://oss-cn-beijing.aliyuncs.com",
            "HTTP_PROXY": ours,
            "http_proxy": ours,
            "NO_PROXY": "",
            "no_proxy": "",
        }
        return self.serves("copy", "--json", check=check, **here)

    def copied(self) -> dict[str, Any]:
        handover = self.serves.root / ".gpufleet" / "handover" / f"{self.serves.stack}.json"
        return json.loads(handover.read_text())["copies"][0]


@pytest.fixture(scope="module")
def hybrid(pulumi: EngineRunner) -> Iterator[Hybrid]:
    trains = aws_life.life(pulumi, "a100-prod", "a100-prod")
    serves = alicloud_life.life(pulumi, "hybrid", "hybrid")
    with trains as on_aws, serves as on_alibaba:
        yield Hybrid(on_aws, on_alibaba)


@contextmanager
def objects() -> Iterator[tuple[str, Any]]:
    """A server of S3's protocol, in a process of its own, and a client of it."""
    (port,) = free_ports(1)
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    client: Any = boto3.client("s3", endpoint_url=url, **KEYS)  # pyright: ignore[reportArgumentType]
    try:
        until(lambda: answers(client))
        yield url, client
    finally:
        server.kill()
        server.wait()


def answers(client: Any) -> bool:
    try:
        client.list_buckets()
    except EndpointConnectionError:
        return False
    return True


def held(client: Any, bucket: str) -> dict[str, bytes]:
    keys = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket).get("Contents", ())]
    return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def test_a_stack_that_goes_on_with_one_that_never_was_says_which(hybrid: Hybrid) -> None:
    answer = hybrid.serves("up", "--yes", "--no-wait", check=False)

    line = "cluster.copies[0].stack: a100-prod has never been up: `gpufleet up a100-prod` first"
    assert answer.returncode == 1
    assert line in answer.stderr
    assert hybrid.serves.alive() == []


def test_the_engines_own_reference_tells_where_the_other_stack_keeps_it(hybrid: Hybrid) -> None:
    hybrid.trains.up()
    hybrid.serves.up()

    (data,) = [row.id for row in hybrid.trains.alive() if row.type == BUCKET and "data" in row.id]
    copied = hybrid.copied()
    assert (copied["cloud"], copied["region"], copied["bucket"]) == ("aws", "us-east-1", data)


def test_a_second_up_asks_again_and_changes_nothing(hybrid: Hybrid) -> None:
    assert hybrid.serves.up()["resources"].startswith("0 changed")


def test_rclone_copies_what_is_new_and_nothing_else(hybrid: Hybrid) -> None:
    source = hybrid.copied()["bucket"]
    (bucket,) = [row.id for row in hybrid.serves.alive() if row.type == OSS and "models" in row.id]
    with objects() as (theirs, aws), objects() as (ours, oss):
        aws.create_bucket(Bucket=source)
        oss.create_bucket(Bucket=bucket)
        for key, content in {**CHECKPOINT, "datasets/a.tar": b"not asked for"}.items():
            aws.put_object(Bucket=source, Key=key, Body=content)

        told = json.loads(hybrid.copy(theirs, ours).stdout)
        assert held(oss, bucket) == CHECKPOINT
        assert told["usd_per_month"] == pytest.approx(39.32)

        aws.put_object(Bucket=source, Key="runs/gpt/step-00000040/manifest", Body=b"{}")
        hybrid.copy(theirs, ours)
        assert held(oss, bucket) == {**CHECKPOINT, "runs/gpt/step-00000040/manifest": b"{}"}

        aws.put_object(Bucket=source, Key="runs/gpt/step-00000040/manifest", Body=b"another")
        answer = hybrid.copy(theirs, ours, check=False)
        assert answer.returncode == 1
        assert "immutable file modified" in answer.stderr
        assert held(oss, bucket)["runs/gpt/step-00000040/manifest"] == b"{}"


def test_either_stack_goes_alone_and_leaves_nothing(hybrid: Hybrid) -> None:
    hybrid.trains("down", "--yes")
    hybrid.serves("down", "--yes")

    assert (hybrid.trains.alive(), hybrid.serves.alive()) == ([], [])
