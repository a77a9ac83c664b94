"""One machine of this computer's own release, without GPUs, in a cluster of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gpu_machines import CIDR, GATEWAY, NETWORK
from ssh_hosts import Site, make_package

from infra.clouds.local.nodes import base, machine, sweep
from infra.clouds.local.nodes.site import MACHINE_USER, NodeSpec

NAME, ADDRESS = "box-1", f"{NETWORK}.11"


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """It is there, unconfigured, and nothing of it afterwards; skips the test where this computer has no machines."""
    if lacking := machine.problems(folder, 1):
        pytest.skip(lacking[0])
    environment = Path(sys.executable).parents[1]
    ground = {"cidr": CIDR, "gateway": GATEWAY, "base": base.name(), "environment": str(environment)}
    spec = NodeSpec(
        site=folder, name=NAME, address=ADDRESS, port=22, public_keys=(), storage={"data": "/data"}, machine=ground
    )
    try:
        machine.create(spec)
        yield Site(folder, (), handover(spec), make_package(folder / "training"))
    finally:
        sweep.remove(folder)


def handover(spec: NodeSpec) -> dict[str, object]:
    node = {
        "name": NAME,
        "group": "box",
        "address": ADDRESS,
        "port": 22,
        "host_key": spec.host_key,
        "prefix": "/",
    }
    access = {
        "user": MACHINE_USER,
        "key_file": str(spec.site / "key"),
        "known_hosts_file": str(spec.site / "known_hosts"),
    }
    return {
        "version": 1,
        "stack": "boxes",
        "cloud": "local",
        "region": None,
        "access": access,
        "nodes": [node],
        "groups": [{"name": "box", "count": 1, "gpu": None, "gpus_per_node": 0, "fabric": "none"}],
        "storage": [{"name": "data", "path": "/data"}],
        "store": {"host": "control", "address": GATEWAY},
        "environment": {"python": sys.executable, "shared": True},
    }
