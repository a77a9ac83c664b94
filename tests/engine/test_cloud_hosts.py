"""A cluster on AWS or Alibaba Cloud from its file to a trained model: real machines stand in for the cloud's.

They boot, fetch the playbooks from the stack's bucket, configure themselves, and are then played on, proven and trained
on over SSH through the head alone, as a person's would be.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import alicloud_life
import aws_life
import pytest
from aws_life import IMAGE, REPOSITORY
from cloud_life import Life
from engine_runner import EngineRunner, until

from infra.clouds.local.nodes import machine

WITHOUT = [tool for tool in (*machine.TOOLS, "gpg", "nft") if not shutil.which(tool)]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="machines need root"),
    pytest.mark.skipif(bool(WITHOUT), reason=f"not installed: {', '.join(WITHOUT)}"),
    pytest.mark.drill,
]


@dataclass(frozen=True)
class Cloud:
    """A cloud with its machines. asked: what its stack file says beside network, access and nodes. types: of the head
    and of the nodes."""

    life_of: Callable[[EngineRunner, dict[str, Any], str], AbstractContextManager[Life]]
    following: Callable[..., AbstractContextManager[Any]]
    asked: Mapping[str, Any]
    types: tuple[str, str]


def clouds() -> dict[str, Cloud]:
    """Read where machines can be made: the hosts need tools that are not everywhere."""
    import alicloud_cloud.hosts
    import aws_cloud.hosts

    on_aws = {"region": "us-east-1", "zone": "us-east-1a", "images": {"x86_64": IMAGE}}
    on_alicloud = {"region": "cn-beijing", "zone": "cn-beijing-l"}
    return {
        "aws": Cloud(aws_life.life_of, aws_cloud.hosts.following, on_aws, ("m6i.large", "c7i.large")),
        "alicloud": Cloud(
            alicloud_life.life_of, alicloud_cloud.hosts.following, on_alicloud, ("ecs.g7.large", "ecs.g7.large")
        ),
    }


@pytest.fixture(scope="module", params=["aws", "alicloud"])
def cluster(request: pytest.FixtureRequest, pulumi: EngineRunner) -> Iterator[tuple[Life, Any]]:
    """A stack with a head and two nodes without GPUs, and the machines of its cloud."""
    from cloud_hosts import hosts

    name, cloud = request.param, clouds()[request.param]
    for part in ("playbooks", "training", "requirements.txt"):
        if not (pulumi.root / part).exists():
            (pulumi.root / part).symlink_to(REPOSITORY / part)
    key = pulumi.root / ".gpufleet" / name / f"nodes-{name}" / "key"
    key.parent.mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ops", "-f", key], check=True)
    cidr = f"10.{random.randrange(214, 250)}.{random.randrange(256)}.0/24"
    asked = {
        "cloud": name,
        **cloud.asked,
        "network": {"cidr": cidr},
        "access": {"ssh_from": [hosts.PEOPLE], "public_key": key.with_suffix(".pub").read_text().strip()},
        "nodes": [
            {"name": "head", "type": cloud.types[0], "count": 1},
            {"name": "node", "type": cloud.types[1], "count": 2},
        ],
    }
    folder = pulumi.root / f"of-{name}"
    with (
        cloud.life_of(pulumi, asked, f"nodes-{name}") as one,
        cloud.following(one.store, folder, cidr) as machines,
    ):
        yield one, machines


def test_up_waits_until_the_nodes_have_made_themselves_and_finds_nothing_left_to_do(cluster: Any) -> None:
    one, machines = cluster

    told = json.loads(one("up", "--yes", "--json").stdout)

    notes = {phase["phase"]: phase["note"] for phase in told["phases"]}
    for id_ in machines.specs:
        said = (machines.root(id_) / "var/log/gpufleet-boot.log").read_text()
        assert "unreachable=0    failed=0" in said, said[-3000:]
    assert notes["nodes"] == "3 up"
    assert notes["configure"].endswith("changed=0")
    assert notes["verify"] == "3 ready"


def test_nothing_but_the_head_answers_people(cluster: Any) -> None:
    one, _ = cluster
    told = json.loads(one("handover").stdout)
    node = next(each for each in told["nodes"] if each["group"] == "node")

    for address, port in ((node["address"], 22), (told["store"]["address"], told["store"]["port"])):
        with pytest.raises(TimeoutError):
            socket.create_connection((address, port), 1)


def test_a_job_runs_on_the_nodes_and_meets_at_the_head(cluster: Any) -> None:
    one, _ = cluster

    told = one.train("smoke")

    assert (told["world_size"], told["finished"]) == (2, True)
    status = json.loads(one("status", "--json").stdout)
    assert [node["state"] for node in status["nodes"]] == ["ready"] * 3
    assert status["run"]["state"] == "finished"


def test_down_leaves_nothing(cluster: Any) -> None:
    one, machines = cluster

    one("down", "--yes")

    assert one.alive() == []
    until(lambda: not list(machines.site.glob("nodes/*")))
