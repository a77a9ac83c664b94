"""Preflight rules of Alibaba Cloud: each with a cluster that it passes and one that it objects to."""

from __future__ import annotations

from dataclasses import replace
from types import UnionType

import pytest
from ack_rule_cases import CASES as ACK_CASES
from ali_clusters import SSH, Project, cluster, group
from ali_rule_cases import A10, mixed
from ali_rule_cases import CASES as ECS_CASES

from infra.checks import every
from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.evaluate import decide
from infra.plan.layout import LayoutError
from infra.plan.model import Plan

CASES = {**ECS_CASES, **ACK_CASES}
ALWAYS = {"items-have-a-price", "down-leaves-something"}  # the tables hold nodes' prices alone, and a key stays
UNASKED = {"volume-exists"}  # the stack file's own types refuse a disk that ESSD does not make
OF_THE_FILE = {"stack-name-fits-what-it-names"}  # its name, which is no key of it


@pytest.mark.parametrize("name", CASES)
def test_a_rule_passes_what_is_right_and_objects_to_what_is_not(ali: Project, name: str) -> None:
    right, wrong, level, key, words = CASES[name]

    passed, refused = ali.plan(**right), ali.plan(**wrong)

    assert not [finding for finding in passed.findings if finding.rule == name]
    assert not passed.errors
    found = [finding for finding in refused.findings if finding.rule == name]
    assert [(each.level, each.path) for each in found] == [(level, f"cluster.{key}")]
    assert words in found[0].message
    if level != "error":
        assert not refused.errors


def _of_the_cloud(kind: type[Plan] | UnionType) -> bool:
    return (
        isinstance(kind, type)
        and kind is not Plan
        and (issubclass(AlicloudPlan, kind) or issubclass(kind, AlicloudPlan))
    )


def test_every_rule_of_alibaba_cloud_has_its_cases() -> None:
    own = {name for name, rule in every().items() if _of_the_cloud(rule.kind)}

    assert own | {error.rule for error in LayoutError.__subclasses__()} - UNASKED == (set(CASES) | ALWAYS | OF_THE_FILE)


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        ("ecs.gn7e-c16g1.32xlarge", "has no eRDMA"),
        ("ecs.gn7i-c8g1.2xlarge", "has no eRDMA"),
        ("ecs.gn8v-8x.48xlarge", "is not known"),
        ("ecs.ebmgn7ex.32xlarge", "say `queue_pairs`"),
    ],
)
def test_a_required_fabric_that_cannot_be_declared_says_why(ali: Project, type_: str, words: str) -> None:
    (finding,) = ali.plan(nodes=group(type=type_, queue_pairs=None, fabric="required")).errors

    assert finding.rule == "fabric-fits-the-type"
    assert words in finding.message


def test_the_key_that_down_leaves_is_told_before_it_is_made(ali: Project) -> None:
    (finding,) = (each for each in ali.plan().findings if each.rule == "down-leaves-something")

    assert "the key for 30 days" in finding.message


@pytest.mark.parametrize("stack", ["my_stack", "1st", "a.b", "a" * 29])
def test_a_stack_whose_name_alibaba_cloud_does_not_take_is_refused(ali: Project, stack: str) -> None:
    (finding,) = decide(replace(ali.load(cluster()), stack=stack)).errors

    assert (finding.rule, finding.path) == ("stack-name-fits-what-it-names", "cluster")


def test_two_eris_cannot_follow_a_load(ali: Project) -> None:
    (finding,) = ali.plan(nodes=group(count=None, min=1, max=4, fabric="required")).errors

    assert "declared one by one and cannot follow a load" in finding.message


def test_a_mix_cannot_ask_for_erdma(ali: Project) -> None:
    nodes = mixed("{kind: spot, max_price: 9.0}").replace("fabric: none", "fabric: required")

    rules = {finding.rule for finding in ali.plan(nodes=nodes).errors}

    assert rules == {"fabric-fits-the-type"}


def test_a_mix_does_not_fall_back(ali: Project) -> None:
    (finding,) = ali.plan(nodes=mixed("{kind: spot, max_price: 9.0, fallback: on-demand}")).errors

    assert finding.rule == "only-a-scaling-group-falls-back"
    assert "a group of several types is spot alone" in finding.message


def test_nodes_without_a_head_cannot_be_reached(ali: Project) -> None:
    (finding,) = ali.plan(access=SSH, nodes=group("", **A10)).errors

    assert "add a group `head`" in finding.message
