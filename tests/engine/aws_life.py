"""The command `gpufleet` on a project whose AWS is the stand-in: real engine, real boto3, one file for a cloud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from aws_cloud import account, front
from aws_cloud.cloud import gone
from cloud_life import Life
from cloud_provider.store import Store
from engine_runner import EngineRunner

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGE = "ami-0123456789abcdef0"


@contextmanager
def life(pulumi: EngineRunner, shipped: str, stack: str) -> Iterator[Life]:
    """A shipped stack under another name, on a cloud of its own."""
    with life_of(pulumi, shipped_cluster(shipped), stack) as one:
        yield one


def shipped_cluster(shipped: str) -> dict[str, Any]:
    """What a shipped stack asks for, without what only its owner's account has."""
    text = (REPOSITORY / "stacks" / f"Pulumi.{shipped}.yaml").read_text()
    asked: dict[str, Any] = yaml.safe_load(text)["config"]["gpufleet:cluster"]
    if "eks" not in asked:  # whose version chooses the image
        asked["images"] = {"x86_64": IMAGE}
    for group in asked["nodes"]:
        if group.get("market", {}).get("kind") == "reservation":  # the new account has none
            del group["market"]
    return asked


@contextmanager
def life_of(pulumi: EngineRunner, asked: dict[str, Any], stack: str) -> Iterator[Life]:
    """A stack of this cluster, on a cloud of its own."""
    file = pulumi.root / "stacks" / f"Pulumi.{stack}.yaml"
    file.write_text(yaml.safe_dump({"config": {"gpufleet:cluster": asked}}))
    cloud = pulumi.root / f"{stack}.sqlite"
    with front.serving(cloud) as url:
        environment = {
            **account.environment(pulumi.environment, cloud),
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        }
        yield Life(EngineRunner(pulumi.root, environment), stack, Store(cloud), gone)
