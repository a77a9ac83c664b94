"""A cluster of ACK: which release of Kubernetes a stack file means."""

from __future__ import annotations

import pytest
from ali_clusters import Project, group
from ali_rule_cases import A10, ACK, SYSTEM

from infra.clouds.alicloud.ack import newest

RELEASED = ["1.36.1-aliyun.1", "1.35.9-aliyun.1", "1.35.10-aliyun.1", "1.35.10-aliyun.2"]


@pytest.mark.parametrize(
    ("asked", "meant"), [("1.35", "1.35.10-aliyun.2"), ("1.36", "1.36.1-aliyun.1"), ("1.3", "1.3")]
)
def test_a_minor_version_is_its_newest_release(asked: str, meant: str) -> None:
    assert newest(asked, RELEASED) == meant


@pytest.mark.parametrize(("version", "lives"), [("1.35.2-aliyun.1", True), ("1.34.1-aliyun.1", False)])
def test_a_whole_release_is_taken_while_its_minor_version_lives(ali: Project, version: str, lives: bool) -> None:
    plan = ali.plan(**{**ACK, "ack": f"{{version: '{version}'}}", "nodes": group(SYSTEM, **A10)})

    assert {finding.rule for finding in plan.errors} == (set() if lives else {"ack-version-lives"})
