"""What Alibaba Cloud is asked before anything is made, with its answers made up."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rendered import REPOSITORY, planned  # pyright: ignore[reportMissingImports]: conftest.py finds it

from ops.clouds.alicloud import account_checks
from ops.clouds.alicloud.account import Account

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB/+HV nobody"
CLUSTER = f"""\
cloud: alicloud
region: cn-beijing
zone: cn-beijing-l
network: {{cidr: 10.40.0.0/16}}
access: {{ssh_from: [203.0.113.0/24], public_key: "{KEY}"}}
nodes:
  - {{name: head, type: ecs.g7.large, count: 1}}
  - {{name: a, type: ecs.gn7i-c8g1.2xlarge, fabric: none, SIZE
"""
FOLLOWING, FIXED = "min: 1, max: 4}", "count: 4}"
OWN, PUBLIC = "m-2zeabcdefghijklmnopq", "ubuntu_24_04_x64_20G_alibase_20260916.vhd"


class Asked(Account):
    """It sells everything. agent: whether its CloudMonitor puts an agent on new instances."""

    agent: bool = False

    def call(self, product: str, action: str, **query: Any) -> Mapping[str, Any]:
        if action == "DescribeMonitoringAgentConfig":
            return {"EnableInstallAgentNewECS": self.agent, "Success": True}
        zone = {"ZoneId": "cn-beijing-l", "Status": "Available", "StatusCategory": "WithStock"}
        return {"AvailableZones": {"AvailableZone": [zone]}}


class WithAgent(Asked):
    agent = True


@pytest.mark.parametrize(
    ("account", "size", "refused"),
    [
        (Asked, FOLLOWING, ["cluster.nodes[1].max"]),
        (Asked, f"{FOLLOWING}\nimages: {{x86_64: {PUBLIC}}}", ["cluster.nodes[1].max"]),
        (Asked, f"{FOLLOWING}\nimages: {{x86_64: {OWN}}}", []),
        (Asked, FIXED, []),
        (WithAgent, FOLLOWING, []),
    ],
)
def test_a_group_that_follows_its_load_is_refused_where_nothing_measures_it(
    account: type[Asked], size: str, refused: list[str], tmp_path: Path
) -> None:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    plan = planned(tmp_path, CLUSTER.replace("SIZE", size))

    findings = list(account_checks.findings(account("cn-beijing"), plan))

    assert [finding.path for finding in findings] == refused
    assert all("PutMonitoringConfig" in finding.message for finding in findings)
