"""Unit tests of one's own stack: a plan is data, and needs no engine, no credentials and no network.

Copy this file, name your stack, and state what must never change unseen.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from infra.graph import plan_document

PROJECT = Path(__file__).resolve().parents[2]  # the folder with Pulumi.yaml
STACK = "a100-prod"


@cache
def plan() -> dict[str, Any]:
    """The document that `gpufleet plan STACK --json` prints."""
    return plan_document(PROJECT, STACK)


def inputs(kind: str, name: str = "") -> list[dict[str, Any]]:
    """The inputs of all resources of a type, by Pulumi's wire names, or of those whose name begins so."""
    rows = [row for row in plan()["resources"] if row["type"] == kind and row["name"].startswith(name)]
    assert rows, f"the stack has no {kind} {name}"
    return [row["inputs"] for row in rows]


def test_no_rule_and_no_policy_objects() -> None:
    assert [finding for finding in plan()["findings"] if finding["level"] != "info"] == []


def test_an_hour_costs_what_was_agreed() -> None:
    assert plan()["cost"]["hourly_max"] < 90


def test_only_our_network_may_log_in() -> None:
    rules = inputs("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")

    assert {rule["cidrIpv4"] for rule in rules if "cidrIpv4" in rule} == {"203.0.113.0/24"}


def test_every_trainer_has_one_ip_interface_and_four_efa_cards() -> None:
    (template,) = inputs("aws:ec2/launchTemplate:LaunchTemplate", "trainer")

    kinds = [card.get("interfaceType", "interface") for card in template["networkInterfaces"]]
    assert kinds == ["interface", *["efa-only"] * 4]


def test_the_data_outlives_the_cluster() -> None:
    (bucket,) = inputs("aws:s3/bucket:Bucket", "storage-data")

    assert not bucket.get("forceDestroy")
