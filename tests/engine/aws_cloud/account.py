"""The real engine on a cloud of its own, as tests use it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from cloud_provider.store import Row, Store
from engine_runner import EngineRunner

from aws_cloud.cloud import gone

PROVIDER = Path(__file__).parent / "bin"
KUBERNETES = Path(__file__).parents[1] / "kubernetes_cluster" / "bin"  # for what EKS holds
STACKS = Path(__file__).resolve().parents[3] / "stacks"


@dataclass(frozen=True)
class Account:
    """An engine, and the AWS account that it works on."""

    engine: EngineRunner
    store: Store

    @classmethod
    def of(cls, engine: EngineRunner, name: str = "cloud") -> Account:
        """The account of a name, in the engine's project: a new one has nothing in it."""
        file = engine.root / f"{name}.sqlite"
        return cls(replace(engine, environment=environment(engine.environment, file)), Store(file))

    def suffering(self, faults: str) -> EngineRunner:
        """The engine on an AWS with faults (see `cloud_provider.faults`)."""
        return replace(self.engine, environment={**self.engine.environment, "AWS_CLOUD_FAULTS": faults})

    def objects(self) -> list[Row]:
        """What the clusters of EKS hold."""
        return Store(Path(self.engine.environment["KUBERNETES_SHELF"])).rows()

    def things(self) -> list[Row]:
        """What costs money or stands in the way: all but what AWS merely goes on showing."""
        return [row for row in self.store.rows() if not gone(row)]


def environment(base: Mapping[str, str], file: Path) -> dict[str, str]:
    """What an engine needs to find the provider and its cloud."""
    path = os.pathsep.join([str(PROVIDER), str(KUBERNETES), base["PATH"]])
    return {**base, "PATH": path, "AWS_CLOUD_FILE": str(file), "KUBERNETES_SHELF": f"{file}.objects"}


def shipped() -> list[str]:
    """The names of the AWS stacks of this project."""
    return [
        file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in sorted(STACKS.iterdir()) if cluster(file)
    ]


def cluster(file: Path) -> dict[str, Any]:
    """What a stack file asks for, empty if not of AWS."""
    wanted = yaml.safe_load(file.read_text())["config"]["gpufleet:cluster"]
    return wanted if wanted["cloud"] == "aws" else {}


def shipped_cluster(stack: str) -> dict[str, Any]:
    """What a shipped stack asks for."""
    return cluster(STACKS / f"Pulumi.{stack}.yaml")
