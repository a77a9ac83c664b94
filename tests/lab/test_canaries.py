"""Secrets in variables stay in their place: none in -vvv output, in a node's facts, files, journal or process list."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

pytestmark = pytest.mark.drill

T4 = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
# Variables that people keep secrets in, of this project's roles and of their own, next to what the roles read.
NAMES = (
    "aws_secret_access_key",
    "aws_session_token",
    "alicloud_access_key_secret",
    "hf_token",
    "wandb_api_key",
    "registry_password",
    "docker_auth",
    "luks_passphrase",
    "bucket_secret_key",
    "rclone_pass",
    "mirror_password",
    "proxy_password",
    "grafana_admin_password",
    "exporter_basic_auth",
    "slurm_munge_key",
    "vault_token",
    "ansible_become_password",
    "ssh_private_key",
    "tls_private_key",
    "pulumi_config_passphrase",
)
CANARIES = {name: f"canary-{number:02d}-{name[:6]}-7f3a" for number, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(T4) as (found,):
        yield found


def holding(text: str) -> list[str]:
    return [name for name, secret in CANARIES.items() if secret in text]


def test_no_canary_leaves_its_place(
    node: GpuMachine, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("secrets", len(CANARIES))
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps(CANARIES))

    played = node.play("gpu_node.yml", "-vvv", "-e", f"@{secrets}")
    checked = node.play("verify.yml", "-vvv", "-e", f"@{secrets}")

    assert played.code == checked.code == 0, played.output
    assert holding(played.output + checked.output) == []
    assert holding(node.run("journalctl --no-pager; ps axww; env")) == []
    changed = node.root.parent / "upper"  # all that the machine has beside the base tree
    found = subprocess.run(["grep", "-rlaE", "canary-[0-9]{2}-", changed], capture_output=True, text=True, check=False)
    assert found.stdout == ""
