"""Preflight rules of AWS: each with a cluster that it passes and one that it objects to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import Project, cluster, group
from eks_rule_cases import CASES as EKS_CASES
from eks_rule_cases import eks
from price_rule_cases import CASES as PRICE_CASES
from rule_cases import BLOCK, RESERVED
from rule_cases import CASES as EC2_CASES
from storage_rule_cases import CASES as STORAGE_CASES
from storage_rule_cases import lustre

from infra.catalog import drivers
from infra.checks import every
from infra.clouds.aws.plan.model import AwsPlan
from infra.evaluate import decide
from infra.plan.layout import LayoutError

CASES = {**EC2_CASES, **PRICE_CASES, **STORAGE_CASES, **EKS_CASES}
OF_THE_FILE = {"eks-name-fits"}  # its name, which is no key of it
ALWAYS = {"items-have-a-price", "down-leaves-something"}  # what depends on use has no price; a key goes late


@pytest.mark.parametrize("name", CASES)
def test_a_rule_passes_what_is_right_and_objects_to_what_is_not(aws: Project, name: str) -> None:
    right, wrong, level, key, words = CASES[name]

    assert not [finding for finding in aws.plan(**right).findings if finding.rule == name]
    assert not aws.plan(**right).errors
    (finding,) = [finding for finding in aws.plan(**wrong).findings if finding.rule == name]
    assert (finding.level, finding.path) == (level, f"cluster.{key}")
    assert words in finding.message


@pytest.mark.parametrize("name", CASES)
def test_a_rule_objects_alone(aws: Project, name: str) -> None:
    _, wrong, level, _, _ = CASES[name]

    errors = aws.plan(**wrong).errors

    assert {finding.rule for finding in errors} == ({name} if level == "error" else set())


def test_every_rule_of_aws_has_its_cases() -> None:
    own = {name for name, rule in every().items() if isinstance(rule.kind, type) and issubclass(rule.kind, AwsPlan)}

    assert own | {error.rule for error in LayoutError.__subclasses__()} == (set(CASES) | ALWAYS | OF_THE_FILE) - (
        every().keys() - own
    )


def test_every_rule_names_its_fact() -> None:
    assert all(rule.violations.__doc__ for rule in every().values())


def test_what_has_no_price_is_named_without_one(aws: Project) -> None:
    (finding,) = (each for each in aws.plan().findings if each.rule == "items-have-a-price")

    assert finding.level == "info"
    assert "traffic between zones" in finding.message
    assert "NAT gateways" not in finding.message


def test_what_down_leaves_is_told_before_it_is_made(aws: Project) -> None:
    plan = aws.plan(storage=lustre())
    (finding,) = (each for each in plan.findings if each.rule == "down-leaves-something")

    assert "the key for 30 days" in finding.message
    assert "a backup of f, which costs until somebody deletes it" in finding.message


def test_a_stack_whose_name_makes_a_longer_one_than_eks_takes_is_refused(aws: Project) -> None:
    named = {length: replace(aws.load(cluster(**eks())), stack="a" * length) for length in (91, 92)}

    (finding,) = decide(named[92]).errors

    assert decide(named[91]).errors == ()
    assert (finding.rule, finding.path) == ("eks-name-fits", "cluster.eks")
    assert finding.message.endswith("the 100 characters that EKS takes: name the stack in 91 at most")


def test_a_lock_that_contradicts_itself_is_refused(aws: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = drivers.load()
    rows = tuple(replace(row, fabric_manager=row.fabric_manager and "580.126.20") for row in lock.tuples)
    monkeypatch.setattr(drivers, "load", lambda: replace(lock, tuples=rows))

    (finding,) = aws.plan().errors

    assert (finding.rule, finding.path) == ("gpu-has-locked-drivers", "cluster.nodes[0].type")
    assert "fabric manager 580.126.20 must be the driver's own version" in finding.message


@pytest.mark.parametrize("market", ["{kind: spot}", RESERVED, BLOCK])
def test_a_head_is_bought_on_demand(aws: Project, market: str) -> None:
    rules = {finding.rule for finding in aws.plan(nodes=group(name="head", count=1, market=market)).errors}

    assert "head-stays" in rules


@pytest.mark.parametrize(
    ("size", "exists"), [(1200, True), (2400, True), (7200, True), (0, False), (1199, False), (3600, False)]
)
def test_lustre_grows_in_steps(aws: Project, size: int, exists: bool) -> None:
    assert (aws.plan(storage=lustre(size_gib=size)).errors == ()) == exists


def test_a_type_whose_cards_are_not_known_is_refused(aws: Project) -> None:
    found = aws.plan(nodes=group(type="p6e-gb200.36xlarge", market=BLOCK)).errors

    assert ("fabric-fits-the-type", "cluster.nodes[0].fabric") in [(each.rule, each.path) for each in found]


def test_one_run_reports_every_failure(aws: Project) -> None:
    plan = aws.plan(
        network="{cidr: 10.40.0.0/28}",
        access="{}",
        nodes=group(type="g6.xlarge", fabric="required", root="{size_gib: 1}", market=BLOCK),
    )

    assert {finding.rule for finding in plan.errors} == {
        "fabric-fits-the-type",
        "network-holds-the-subnets",
        "volume-exists",
        "type-is-sold-this-way",
        "somebody-can-log-in",
    }


def test_a_part_of_a_gpu_has_no_locked_driver(aws: Project) -> None:
    found = {each.rule: each.message for each in aws.plan(nodes=group(type="g6f.xlarge", fabric="none")).errors}

    assert found["gpu-has-locked-drivers"].startswith("0.125 of a GPU needs NVIDIA's driver for virtual GPUs")
