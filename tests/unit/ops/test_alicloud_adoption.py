"""That nothing of any cluster is of a type which recovery could not find again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rendered import REPOSITORY, planned, render  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra import evaluate, spec
from ops.clouds.alicloud.adoption import QUERIES
from ops.clouds.alicloud.resource_ids import FOLLOWING, TAGGED
from ops.engine.state_repair import PROVIDERS, refreshed

POOL = "alicloud:cs/nodePool:NodePool"  # docs/alibaba.md says that these are not found again
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB/+HV nobody"
BOUGHT = f"""\
cloud: alicloud
region: cn-beijing
zone: cn-beijing-l
network: {{cidr: 10.40.0.0/16}}
access: {{ssh_from: [203.0.113.0/24], public_key: "{KEY}"}}
nodes:
  - {{name: head, type: ecs.g7.large, count: 1}}
  - name: a
    type: ecs.ebmgn7ex.32xlarge
    count: 4
    queue_pairs: 8192
    market:
      kind: assurance
      months: 3
      confirm: buy an elasticity assurance for a for 3 months, never refunded
"""


@pytest.mark.parametrize("stack", ["aliyun-a100", "aliyun-spot", "aliyun-scc", "ack-gn7", "hybrid", "bought"])
def test_every_type_of_a_cluster_is_found_by_its_tag_its_name_or_its_owner(stack: str, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    decided = planned(tmp_path, BOUGHT, stack) if stack == "bought" else evaluate.decide(spec.load(REPOSITORY, stack))

    types = {node.type for node in render(decided, tmp_path).nodes.values() if node.custom}

    own = {type_ for type_ in types if type_.startswith((PROVIDERS, "kubernetes:", "pulumi:pulumi:"))} | {POOL}
    assert types - own - TAGGED.keys() - FOLLOWING.keys() - QUERIES.keys() == set()


def test_how_a_cluster_is_to_be_deleted_is_known_of_one_that_was_found_again() -> None:
    """No API tells it."""
    options = [{"deleteMode": "delete", "resourceType": "SLS_Data"}]
    row = {"inputs": {"deleteOptions": options, "vswitchIds": ["${a.id}"]}}

    assert refreshed(row, "c1").outputs == {"deleteOptions": options, "id": "c1"}
