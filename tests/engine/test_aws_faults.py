"""What goes wrong at AWS, on the real engine: the error says what it was, and the next `up` goes on."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from aws_cloud.account import Account
from aws_cloud.kinds_ec2 import FLEET, INSTANCE, SUBNET, TEMPLATE, VPC
from engine_runner import EngineRunner

STACK = "tried"
PROJECT = """
name: tried
runtime: {name: python, options: {virtualenv: .venv}}
config: {pulumi:disable-default-providers: {value: ["*"]}}
"""
PROGRAM = """
from pulumi import ResourceOptions
from pulumi_aws import Provider, ec2

mine = ResourceOptions(provider=Provider("aws", region="us-east-1"))
vpc = ec2.Vpc("vpc", cidr_block="10.0.0.0/16", opts=mine)
subnet = ec2.Subnet("nodes", vpc_id=vpc.id, cidr_block="10.0.0.0/24", availability_zone="us-east-1a", opts=mine)
template = ec2.LaunchTemplate("nodes", image_id="ami-1", instance_type="g5.xlarge", opts=mine)
head = ec2.Instance("head", launch_template={"id": template.id, "version": "$Default"}, subnet_id=subnet.id, opts=mine)
ec2.Fleet(
    "nodes",
    type="instant",
    launch_template_configs=[{
        "launch_template_specification": {"launch_template_id": template.id, "version": "$Default"},
        "overrides": [{"subnet_id": subnet.id}],
    }],
    target_capacity_specification={"default_target_capacity_type": "on-demand", "total_target_capacity": 2},
    terminate_instances=True,
    opts=mine,
)
"""
WHOLE = Counter({VPC: 1, SUBNET: 1, TEMPLATE: 1, INSTANCE: 3, FLEET: 1})


@pytest.fixture
def account(pulumi: EngineRunner, tmp_path: Path) -> Account:
    """A small program of five resources, which needs a tenth of the time of a whole cluster."""
    (tmp_path / ".gpufleet" / "pulumi").mkdir(parents=True)
    (tmp_path / ".venv").symlink_to(pulumi.root / ".venv")
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "__main__.py").write_text(PROGRAM)
    state = {"PULUMI_BACKEND_URL": f"file://{tmp_path}/.gpufleet/pulumi?metadata=skip"}
    made = Account.of(replace(pulumi, root=tmp_path, environment={**pulumi.environment, **state}))
    made.engine("stack", "init", STACK)
    return made


def kinds(account: Account) -> Counter[str]:
    return Counter(row.type for row in account.things() if row.type in WHOLE)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        pytest.param(
            f"throttle:{VPC}",
            "creating Vpc (vpc): api error RequestLimitExceeded: exceeded maximum number of attempts, 25",
            marks=pytest.mark.drill,
        ),
        (f"capacity:{INSTANCE}", "creating Instance (head): api error InsufficientInstanceCapacity"),
        pytest.param(
            f"timeout:{SUBNET}",
            "timeout while waiting for state to become 'available' (last state: 'pending')",
            marks=pytest.mark.drill,
        ),
    ],
)
def test_a_fault_is_told_and_the_next_up_goes_on(account: Account, fault: str, told: str) -> None:
    failed = account.suffering(fault).up(STACK, check=False)
    assert failed.returncode != 0
    assert told in failed.stdout
    account.engine.up(STACK)
    assert kinds(account) == WHOLE


@pytest.mark.drill
def test_a_few_refusals_for_too_many_requests_are_no_error(account: Account) -> None:
    account.suffering(f"throttle=3:{SUBNET}").up(STACK)
    assert account.store.faults("throttle", SUBNET) == 3
    assert kinds(account) == WHOLE


@pytest.mark.drill
def test_a_gang_without_capacity_comes_up_empty_and_stays_so(account: Account) -> None:
    """As AWS and its provider do: who brings a cluster up must count its machines."""
    account.suffering(f"capacity:{FLEET}").up(STACK)
    account.engine.up(STACK, "--expect-no-changes")
    assert kinds(account) == WHOLE - Counter({INSTANCE: 2})


@pytest.mark.drill
def test_what_no_state_knows_is_imported_by_its_id_and_not_made_again(account: Account) -> None:
    account.suffering(f"lose:{VPC}").up(STACK, check=False)  # the provider dies before it answers
    (lost,) = account.store.of(VPC)
    assert lost.id not in {resource.get("id") for resource in account.engine.resources(STACK)}
    (provider,) = (one["urn"] for one in account.engine.resources(STACK) if one["type"] == "pulumi:providers:aws")
    how = ("--provider", f"aws={provider}", "--generate-code=false", "--protect=false", "--yes", "--skip-preview")
    account.engine("import", VPC, "vpc", lost.id, *how, "--stack", STACK)
    account.engine.up(STACK)
    assert kinds(account) == WHOLE


def test_an_engine_that_is_killed_leaves_what_its_next_run_makes_again(account: Account) -> None:
    slow = account.suffering(f"delay=1:{TEMPLATE}")
    slow.stop(signal.SIGKILL, lambda: account.store.of(TEMPLATE), "up", "--yes", "--skip-preview", "--stack", STACK)
    account.engine("cancel", "--yes", STACK)
    account.engine.up(STACK)
    assert kinds(account)[TEMPLATE] == 2


def test_an_argument_that_the_sdk_does_not_have_is_one_clear_line(account: Account) -> None:
    program = PROGRAM.replace("pulumi_aws import Provider, ec2", "pulumi_aws import Provider, ec2\nimport pulumi")
    program += '\npulumi.CustomResource("aws:ec2/vpc:Vpc", "odd", {"cidrBlok": "10.9.0.0/16"}, mine)\n'
    (account.engine.root / "__main__.py").write_text(program)
    failed = account.engine("preview", "--stack", STACK, check=False)
    assert "error: aws:ec2/vpc:Vpc resource 'odd' has a problem: cidrBlok: unknown argument" in failed.stdout
    assert account.things() == []
