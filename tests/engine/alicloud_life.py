"""The command `gpufleet` on a project whose Alibaba Cloud is the stand-in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from alicloud_cloud import front
from cloud_life import Life
from cloud_provider.store import Store
from engine_runner import EngineRunner

REPOSITORY = Path(__file__).resolve().parents[2]
PROVIDER = Path(__file__).parent / "alicloud_cloud" / "bin"
KUBERNETES = Path(__file__).parent / "kubernetes_cluster" / "bin"  # for what ACK holds


def shipped_cluster(shipped: str) -> dict[str, Any]:
    """What a shipped stack asks for."""
    text = (REPOSITORY / "stacks" / f"Pulumi.{shipped}.yaml").read_text()
    return yaml.safe_load(text)["config"]["gpufleet:cluster"]


@contextmanager
def life(pulumi: EngineRunner, shipped: str, stack: str) -> Iterator[Life]:
    """A shipped stack under another name, on a cloud of its own."""
    with life_of(pulumi, shipped_cluster(shipped), stack) as one:
        yield one


@contextmanager
def life_of(pulumi: EngineRunner, asked: dict[str, Any], stack: str) -> Iterator[Life]:
    """A stack of this cluster, on a cloud of its own."""
    wanted = {"config": {"gpufleet:cluster": asked}}
    (pulumi.root / "stacks" / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(wanted))
    cloud = pulumi.root / f"{stack}.sqlite"
    with front.serving(cloud) as url:
        found = {
            **pulumi.environment,
            "PATH": os.pathsep.join([str(PROVIDER), str(KUBERNETES), pulumi.environment["PATH"]]),
            "KUBERNETES_SHELF": f"{cloud}.objects",
            "ALICLOUD_CLOUD_FILE": str(cloud),
            "GPUFLEET_ALICLOUD_ENDPOINT": url,
            "ALIBABA_CLOUD_ACCESS_KEY_ID": "x",
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "x",
            "ALIBABA_CLOUD_ECS_METADATA_DISABLED": "true",
        }
        yield Life(EngineRunner(pulumi.root, found), stack, Store(cloud), front.gone)
