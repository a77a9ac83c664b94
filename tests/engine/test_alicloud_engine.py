"""Every Alibaba Cloud stack of this project on the real engine: made, left alone, taken away."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from alicloud_cloud.kinds import INSTANCE
from cloud_provider.store import Row, Store
from engine_runner import EngineRunner

from infra.graph import render

REPOSITORY = Path(__file__).resolve().parents[2]
PROVIDER = Path(__file__).parent / "alicloud_cloud" / "bin"
KUBERNETES = Path(__file__).parent / "kubernetes_cluster" / "bin"  # for what ACK holds
pytestmark = pytest.mark.drill  # the normal run proves the engine's way on AWS, whose stand-in is built the same
STACKS = ("aliyun-scc", "aliyun-a100", "aliyun-spot", "ack-gn7")


@dataclass(frozen=True)
class Life:
    """What was seen of a stack from its first preview to its end."""

    stack: str
    rendered: set[str]
    previewed: str
    deployed: set[str]
    made: list[Row]
    again: str
    refreshed: str
    left: list[Row]


@pytest.fixture(scope="module", params=STACKS)
def life(request: pytest.FixtureRequest, pulumi: EngineRunner) -> Life:
    stack = request.param
    engine, store = on_alicloud(pulumi, stack)
    engine.write(stack, **cluster(stack))
    previewed = engine("preview", "--stack", stack).stdout
    engine.up(stack)
    made, deployed = store.rows(), {resource["urn"] for resource in engine.resources(stack)}
    again = engine.up(stack, "--expect-no-changes").stdout
    refreshed = engine("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack).stdout
    engine.destroy(stack)
    return Life(
        stack=stack,
        rendered=set(render(engine.root, stack).nodes),
        previewed=previewed,
        deployed=deployed,
        made=made,
        again=again,
        refreshed=refreshed,
        left=[*store.rows("state = ''"), *Store(Path(engine.environment["KUBERNETES_SHELF"])).rows()],
    )


def on_alicloud(pulumi: EngineRunner, name: str, **environment: str) -> tuple[EngineRunner, Store]:
    """The engine on an Alibaba Cloud of its own, and what that cloud holds."""
    file = pulumi.root / f"{name}.sqlite"
    path = os.pathsep.join([str(PROVIDER), str(KUBERNETES), pulumi.environment["PATH"]])
    files = {"ALICLOUD_CLOUD_FILE": str(file), "KUBERNETES_SHELF": f"{file}.objects"}
    found = {**pulumi.environment, "PATH": path, **files, **environment}
    return replace(pulumi, environment=found), Store(file)


def cluster(stack: str) -> dict[str, Any]:
    """What a shipped stack asks for."""
    text = (REPOSITORY / "stacks" / f"Pulumi.{stack}.yaml").read_text()
    return yaml.safe_load(text)["config"]["gpufleet:cluster"]


def test_a_preview_shows_every_resource(life: Life) -> None:
    assert f"+ {len(life.rendered)} to create" in life.previewed


def test_up_makes_what_the_rendered_graph_holds_each_once(life: Life) -> None:
    assert life.deployed == life.rendered
    assert set(Counter(row.urn for row in life.made if row.urn).values()) == {1}


def test_as_many_machines_run_as_the_stack_asks_for(life: Life) -> None:
    asked = sum(group.get("count", group.get("min")) for group in cluster(life.stack)["nodes"])
    assert len([row for row in life.made if row.type == INSTANCE]) == asked


def test_a_second_up_and_a_refresh_change_nothing(life: Life) -> None:
    assert f"{len(life.rendered)} unchanged" in life.again
    assert f"{len(life.rendered)} unchanged" in life.refreshed


def test_destroy_leaves_nothing_machines_included(life: Life) -> None:
    assert life.left == []


def test_a_type_that_is_sold_out_is_told_in_the_clouds_own_words_and_nothing_stays(pulumi: EngineRunner) -> None:
    engine, store = on_alicloud(pulumi, "soldout", ALICLOUD_CLOUD_FAULTS=f"capacity:{INSTANCE}")
    engine.write("soldout", **cluster("aliyun-scc"))

    answer = engine.up("soldout", check=False)

    assert answer.returncode != 0
    assert "api error OperationDenied.NoStock: " in answer.stdout + answer.stderr
    engine.destroy("soldout")
    assert store.rows("state = ''") == []
