"""What a node was told to fetch at its first boot is there for as long as its stack is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import alicloud_life
import aws_life
import pytest
from cloud_life import Life
from engine_runner import REPOSITORY, EngineRunner

from infra.clouds.bundle import LOCK

pytestmark = pytest.mark.drill


@pytest.mark.parametrize(("life", "shipped"), [(aws_life.life, "a100-spot"), (alicloud_life.life, "aliyun-spot")])
def test_playbooks_stay_when_others_come_and_go_with_the_stack(
    tmp_path: Path, life: Callable[[EngineRunner, str, str], AbstractContextManager[Life]], shipped: str
) -> None:
    playbook = tmp_path / "playbooks" / "gpu_node.yml"
    with life(with_own_playbooks(playbook), shipped, "bundles") as one:
        one.pulumi("stack", "init", "--no-select", one.stack)
        one.pulumi.up(one.stack)
        first = bundles(one)
        playbook.write_text("- hosts: others\n")
        one.pulumi.up(one.stack)
        both = bundles(one)
        one.pulumi.destroy(one.stack)

        assert (len(first), len(both)) == (1, 2)
        assert first < both
        assert one.alive() == []


def with_own_playbooks(playbook: Path) -> EngineRunner:
    """A project that packs its own playbooks, not those of this repository."""
    root = playbook.parents[1]
    found = EngineRunner.on_a_project(root)
    (root / "infra").unlink()
    shutil.copytree(REPOSITORY / "infra", root / "infra", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / LOCK, root)
    playbook.parent.mkdir()
    playbook.write_text("- hosts: all\n")
    return replace(found, environment={**found.environment, "PYTHONPATH": str(root)})


def bundles(one: Life) -> set[str]:
    return {row.inputs["key"] for row in one.store.rows() if row.inputs.get("key", "").startswith("bundles/")}
