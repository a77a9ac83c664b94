"""Every AWS stack of this project on the real engine: made, left alone, changed behind its back, mended, taken away."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from aws_cloud.account import STACKS, Account, shipped, shipped_cluster
from cloud_provider.store import Row
from engine_runner import EngineRunner

from infra.graph import render

SAMPLE = "dev-g5"  # the smallest goes all the way in the normal run; the others do in the drill
TENANTED = "eks-tenant"  # eks-a100, with the objects and charts of somebody who works in it
PLANNED = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Life:
    """What was seen of a stack from its first preview to its end."""

    stack: str
    rendered: set[str]
    previewed: str
    cloud_after_preview: list[Row]
    deployed: set[str]
    made: list[Row]
    held: list[Row]
    again: str
    refreshed: str
    drift: int
    mended: Row
    left: list[Row]


@pytest.fixture(
    scope="module",
    params=[pytest.param(s, marks=[] if s == SAMPLE else pytest.mark.drill) for s in [*shipped(), TENANTED]],
)
def life(request: pytest.FixtureRequest, pulumi: EngineRunner) -> Life:
    stack = request.param
    account = Account.of(pulumi, stack)
    account.engine.write(stack, **asked(stack))
    return _lived(account, stack)


def asked(stack: str) -> dict[str, Any]:
    """What a stack of these tests asks for: a shipped one, or that with the tenant of ack-gn7."""
    if stack != TENANTED:
        return shipped_cluster(stack)
    wanted = shipped_cluster("eks-a100")
    ack = yaml.safe_load((STACKS / "Pulumi.ack-gn7.yaml").read_text())["config"]["gpufleet:cluster"]["ack"]
    return {**wanted, "eks": {**wanted["eks"], "tenant": ack["tenant"]}}


def _lived(account: Account, stack: str) -> Life:
    engine = account.engine
    previewed = engine("preview", "--stack", stack).stdout
    cloud_after_preview = account.things()
    engine.up(stack)
    made, held = account.things(), account.objects()
    deployed = {resource["urn"] for resource in engine.resources(stack)}
    again = engine.up(stack, "--expect-no-changes").stdout
    refreshed = engine("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack).stdout
    vpc = next(row for row in made if row.type == "aws:ec2/vpc:Vpc")
    account.store.put([Row(**{**vars(vpc), "inputs": {**vpc.inputs, "enableDnsHostnames": False}})])
    looked = engine("refresh", "--preview-only", "--expect-no-changes", "--stack", stack, check=False)
    engine.up(stack, "--refresh")
    mended = next(row for row in account.things() if row.id == vpc.id)
    engine.destroy(stack)
    return Life(
        stack=stack,
        rendered=set(render(engine.root, stack).nodes),
        previewed=previewed,
        cloud_after_preview=cloud_after_preview,
        deployed=deployed,
        made=made,
        held=held,
        again=again,
        refreshed=refreshed,
        drift=looked.returncode,
        mended=mended,
        left=[*account.things(), *account.objects()],
    )


def test_a_preview_shows_every_resource_and_makes_none(life: Life) -> None:
    assert f"+ {len(life.rendered)} to create" in life.previewed
    assert life.cloud_after_preview == []


def test_up_makes_what_the_rendered_graph_holds(life: Life) -> None:
    assert life.deployed == life.rendered


def test_each_resource_is_made_once(life: Life) -> None:
    urns = Counter(row.urn for row in life.made if row.urn)
    assert set(urns.values()) == {1}


def test_as_many_machines_run_as_the_stack_asks_for(life: Life) -> None:
    running = [row for row in life.made if row.type == "aws:ec2/instance:Instance"]
    groups = asked(life.stack)["nodes"]
    assert len(running) == sum(group.get("count", group.get("min")) for group in groups)
    assert {row.tags["gpufleet:stack"] for row in running} == {life.stack}


def test_a_tenant_s_objects_are_in_its_cluster_and_nobody_has_any_elsewhere(life: Life) -> None:
    kinds = {row.type.rpartition("/")[2] for row in life.held}

    assert ({"Namespace", "ResourceQuota", "NetworkPolicy", "ClusterQueue"} <= kinds) == (life.stack == TENANTED)


def test_a_second_up_changes_nothing(life: Life) -> None:
    assert f"{len(life.rendered)} unchanged" in life.again


def test_a_refresh_changes_nothing(life: Life) -> None:
    assert f"{len(life.rendered)} unchanged" in life.refreshed


def test_a_change_behind_its_back_is_seen_and_mended(life: Life) -> None:
    assert life.drift == 7  # the engine's code for changes that were not expected
    assert life.mended.inputs["enableDnsHostnames"] is True


def test_destroy_leaves_nothing_machines_included(life: Life) -> None:
    assert life.left == []


@pytest.mark.drill
def test_the_number_of_calls_does_not_grow_with_the_nodes(pulumi: EngineRunner) -> None:
    account = Account.of(pulumi, "calls")
    few, many = (_planned(account, count) for count in (4, 1000))
    assert few == many


def _planned(account: Account, count: int) -> PLANNED:
    """The calls of a preview of a spot gang."""
    wanted: dict[str, Any] = json.loads(json.dumps(shipped_cluster("a100-spot")))
    wanted["nodes"][1]["count"] = count
    wanted.pop("budget")
    account.engine.write(f"nodes-{count}", **wanted)
    before = Counter(account.store.calls())
    account.engine("preview", "--stack", f"nodes-{count}")
    return Counter(account.store.calls()) - before
