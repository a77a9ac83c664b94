"""The real engine holds every resource against the policy, through the pack and our language host."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aws_cloud.account import Account, shipped_cluster
from engine_runner import EngineRunner

REPOSITORY = Path(__file__).resolve().parents[2]
PACK = REPOSITORY / "infra" / "policy_pack"

WEAK = """
import pulumi
import pulumi_aws as aws

provider = aws.Provider("aws", region="us-east-1")
opts = pulumi.ResourceOptions(provider=provider)
tags = {"gpufleet:stack": "weak", "gpufleet:name": "it"}
vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags=tags, opts=opts)
door = aws.ec2.SecurityGroup("door", vpc_id=vpc.id, tags=tags, opts=opts)
ssh = {"ip_protocol": "tcp", "from_port": 22, "to_port": 22}
for half in ("0.0.0.0/1", "128.0.0.0/1"):
    aws.vpc.SecurityGroupIngressRule(f"half-{half[:3]}", security_group_id=door.id, cidr_ipv4=half, **ssh, opts=opts)
aws.ec2.LaunchTemplate(
    "template", instance_type="g5.xlarge", image_id="ami-0123456789abcdef0", tags=tags, opts=opts,
    metadata_options={"http_tokens": "optional", "http_put_response_hop_limit": 2},
)
"""


VIOLATION = re.compile(r"\[mandatory\]\s+(?P<rule>[\w-]+)\s+\([^ ]+ (?P<resource>[^)]+)\)")
SAMPLE = "dev-g5"  # costs 1.006 USD an hour


@pytest.fixture(scope="module")
def account(pulumi: EngineRunner) -> Account:
    if not (PACK / ".venv" / "bin" / "python").exists():
        pytest.skip("the policy pack has no environment of its own: run `make setup`")
    return Account.of(pulumi)


@pytest.fixture(scope="module")
def sample(account: Account) -> Iterator[EngineRunner]:
    account.engine.write(SAMPLE, **shipped_cluster(SAMPLE))
    yield account.engine
    account.engine.destroy(SAMPLE)


@pytest.fixture(scope="module")
def weak(account: Account) -> Iterator[EngineRunner]:
    """The engine on a program that no stack file could ask for."""
    root = account.engine.root / "weak"
    (root / "program").mkdir(parents=True)
    (root / "program" / "__main__.py").write_text(WEAK)
    (root / ".venv").symlink_to(REPOSITORY / ".venv")
    stated = {"name": "weak", "runtime": {"name": "python", "options": {"virtualenv": ".venv"}}, "main": "program/"}
    (root / "Pulumi.yaml").write_text(json.dumps(stated))
    engine = replace(account.engine, root=root)
    engine("stack", "init", "--no-select", "weak")
    yield engine
    engine.destroy("weak")


def violations(printed: str) -> set[tuple[str, str]]:
    """Rule and resource of each mandatory violation."""
    return {(found["rule"], found["resource"]) for found in VIOLATION.finditer(printed)}


def test_a_sound_stack_is_made_without_a_violation(sample: EngineRunner) -> None:
    made = sample.up(SAMPLE, "--policy-pack", str(PACK))

    assert "gpufleet@v0.1.0" in made.stdout
    assert violations(made.stdout) == set()
    assert "can't run policy" not in made.stdout


def test_a_ceiling_of_whoever_deploys_is_held(sample: EngineRunner, tmp_path: Path) -> None:
    config = tmp_path / "limits.json"
    config.write_text(json.dumps({"cost-ceiling": {"enforcementLevel": "mandatory", "usd_per_hour": 1.0}}))

    limited = ("--policy-pack", str(PACK), "--policy-pack-config", str(config))
    refused = sample("preview", "--stack", SAMPLE, *limited, check=False)

    assert refused.returncode != 0
    assert {rule for rule, _ in violations(refused.stdout)} == {"cost-ceiling"}
    assert "nodes cost up to 1.01 USD an hour; the ceiling is 1" in refused.stdout


def test_a_preview_refuses_what_each_rule_refuses(account: Account, weak: EngineRunner) -> None:
    before = account.things()

    refused = weak("preview", "--stack", "weak", "--policy-pack", str(PACK), check=False)

    assert refused.returncode != 0
    assert violations(refused.stdout) == {
        ("encrypted-volumes", "template"),
        ("imdsv2", "template"),
        ("ssh-from-the-world", "half-0.0"),
        ("ssh-from-the-world", "half-128"),
        ("tags-on-what-templates-make", "template"),
        ("vpc-has-a-flow-log", "net"),
    }
    assert account.things() == before


def test_a_resource_that_violates_a_rule_by_itself_is_never_made(account: Account, weak: EngineRunner) -> None:
    refused = weak.up("weak", "--policy-pack", str(PACK), check=False)

    assert refused.returncode != 0
    assert ("imdsv2", "template") in violations(refused.stdout)
    kinds = [row.type for row in account.things() if row.tags.get("gpufleet:stack") == "weak"]
    assert "aws:ec2/launchTemplate:LaunchTemplate" not in kinds


def test_a_pack_without_its_environment_says_so_in_one_line(weak: EngineRunner, tmp_path: Path) -> None:
    shutil.copy(PACK / "PulumiPolicy.yaml", tmp_path)
    shutil.copy(PACK / "__main__.py", tmp_path)

    refused = weak("preview", "--stack", "weak", "--policy-pack", str(tmp_path), check=False)

    missing = tmp_path / ".venv" / "bin" / "python"
    assert refused.returncode != 0
    assert f"PulumiPolicy.yaml: runtime.options.virtualenv is '.venv', but {missing} does not exist" in refused.stdout
