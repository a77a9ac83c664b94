"""Two plans held against each other: pure functions of two documents."""

from __future__ import annotations

import inspect
import json
import re
from base64 import b64encode
from importlib import import_module
from typing import Any

import pytest

from infra.clouds.aws.replacement import REPLACES
from infra.graph import diff
from infra.graph.diff.text import LONGEST, pair
from infra.graph.diff.values import changes

STACK, CLUSTER, NETWORK = "urn::Stack::s", "urn::Cluster::s", "urn::Network::network"


def row(name: str, kind: str = "aws:ec2/subnet:Subnet", parent: str = NETWORK, **inputs: Any) -> dict[str, Any]:
    made_of = {key: [f"urn::{value[2:-1].partition('.')[0]}"] for key, value in inputs.items() if "${" in str(value)}
    return {
        "urn": f"urn::{name}",
        "type": kind,
        "name": name,
        "parent": parent,
        "custom": True,
        "inputs": inputs,
        "property_dependencies": made_of,
        "provider": "p",
        "protect": False,
    }


def component(urn: str, name: str, parent: str) -> dict[str, Any]:
    return row(name, "gpufleet:test:Part", parent) | {"urn": urn, "custom": False}


def document(*rows: dict[str, Any], hourly: float = 1.0, findings: list[Any] | None = None) -> dict[str, Any]:
    parts = [component(STACK, "s", ""), component(CLUSTER, "s", STACK), component(NETWORK, "network", CLUSTER)]
    items = [{"name": "trainer", "hourly": hourly}]
    cost = {"currency": "USD", "hourly": hourly, "hourly_max": hourly, "items": items}
    decided = {"commands": [], "decisions": {}}
    return {"stack": "s", "resources": [*parts, *rows], "findings": findings or [], "cost": cost, **decided}


def told(before: dict[str, Any], after: dict[str, Any]) -> str:
    return diff.text({**after, "against": "HEAD", "difference": diff.difference(before, after)})


def actions(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["action"] for each in diff.difference(before, after)["resources"]}


def test_resources_are_added_changed_replaced_and_removed_below_the_part_that_declares_them() -> None:
    before = document(row("a", tags={"x": "1"}), row("b", cidrBlock="10.0.0.0/24"), row("c"), row("same", k=1))
    after = document(row("a", tags={"x": "2"}), row("b", cidrBlock="10.0.1.0/24"), row("d"), row("same", k=1))

    found = diff.difference(before, after)

    assert actions(before, after) == {"a": "change", "b": "replace", "c": "remove", "d": "add"}
    assert {each["concern"] for each in found["resources"]} == {"network"}
    assert found["unchanged"] == 1
    assert json.loads(json.dumps(found)) == found


def test_equal_plans_do_not_differ() -> None:
    assert "no resource differs, 1 unchanged" in told(document(row("a", k=1)), document(row("a", k=1)))


def test_what_is_made_of_a_replaced_resource_is_replaced_with_it_as_far_as_it_goes() -> None:
    rest = [
        row("subnet", vpcId="${vpc.id}"),
        row("head", "aws:ec2/instance:Instance", subnetId="${subnet.id}"),
        row("log", "aws:cloudwatch/logGroup:LogGroup", retention="${vpc.id}"),
    ]
    old, new = (row("vpc", "aws:ec2/vpc:Vpc", cidrBlock=cidr) for cidr in ("10.0.0.0/16", "10.1.0.0/16"))

    assert actions(document(old, *rest), document(new, *rest)) == dict.fromkeys(("vpc", "subnet", "head"), "replace")


def test_a_changed_provider_replaces_and_a_changed_protection_does_not() -> None:
    before = document(row("a", k=1), row("b", k=1))
    after = document(row("a", k=1) | {"provider": "q"}, row("b", k=1) | {"protect": True})

    assert actions(before, after) == {"a": "replace", "b": "change"}


def test_a_policy_is_compared_as_what_it_says() -> None:
    def policy(*actions: str) -> str:
        return json.dumps({"Statement": [{"Action": list(actions), "Sid": "a"}]})

    (change,) = changes({"policy": policy("s3:Get")}, {"policy": policy("s3:Get", "s3:Put")})

    assert change == {"path": "policy.Statement[0].Action[1]", "after": "s3:Put"}


def test_user_data_is_compared_line_by_line_and_its_json_by_key() -> None:
    def script(count: int) -> str:
        return b64encode(f'#!/bin/bash\n{{"group": "a", "count": {count}}}\nexit 0\n'.encode()).decode()

    (change,) = changes({"userData": script(1)}, {"userData": script(2)})

    assert change == {"path": "userData:2.count", "before": 1, "after": 2}


def test_an_item_at_the_front_of_a_list_is_one_addition() -> None:
    assert list(changes(["b", "c"], ["a", "b", "c"], "k")) == [{"path": "k[0]", "after": "a"}]


@pytest.mark.parametrize(
    ("before", "after"), [("hunter2", "[secret]"), ("[secret]", "hunter2"), ({"a": "hunter2"}, "[secret]")]
)
def test_a_value_that_is_a_secret_on_one_side_is_shown_on_none(before: Any, after: Any) -> None:
    text = told(document(row("a", password=before)), document(row("a", password=after)))

    assert "~   Subnet a" in text
    assert "hunter2" not in text


def test_a_long_value_shows_what_differs() -> None:
    before, after = "x" * 500 + "old" + "y" * 500, "x" * 500 + "new" + "y" * 500

    assert pair(before, after) == f"…{'x' * 12}old{'y' * 12}… → …{'x' * 12}new{'y' * 12}…"
    assert len(pair("a" * 999, "b" * 999)) <= 2 * LONGEST + 3


def test_no_value_breaks_a_line_or_steers_a_terminal() -> None:
    text = told(document(row("a", k="x")), document(row("a", k="\x1b[2J\nnext: line")))

    assert "\x1b" not in text
    assert "\nnext" not in text


def test_the_marks_stand_in_the_first_column() -> None:
    before = document(row("a", cidrBlock="1"), row("b"), row("e", k=1))
    lines = told(before, document(row("a", cidrBlock="2"), row("c", k=1), row("e", k=2))).splitlines()

    assert {line[0] for line in lines if re.search(r"Subnet \w$", line)} == {"+", "-", "~", "!"}


def test_the_price_and_what_it_is_made_of_are_compared() -> None:
    text = told(document(hourly=10.0), document(hourly=15.0))

    assert "price    10.00 → 15.00 USD/h (+5.00, +50.0 %)" in text
    assert "month    7,300 → 10,950 USD (+3,650, +50.0 %)" in text
    assert "trainer 10.00 → 15.00" in text


def test_findings_that_appeared_and_that_went_are_told() -> None:
    old, new = ({"level": "error", "rule": rule, "path": "p", "message": "m"} for rule in ("gone", "fresh"))

    text = told(document(findings=[old]), document(findings=[new]))

    assert "- error    p: m [gone]" in text
    assert "+ error    p: m [fresh]" in text


def test_a_refused_plan_removes_nothing() -> None:
    refused = document() | {"resources": [], "findings": [{"level": "error", "rule": "r", "path": "p", "message": "m"}]}

    assert "not compared" in told(document(row("a")), refused)
    assert diff.difference(document(row("a")), refused)["resources"] == []


@pytest.mark.parametrize("kind", [kind for kind in REPLACES if kind.startswith("aws:")])
def test_the_inputs_that_replace_are_inputs_of_the_type(kind: str) -> None:
    _, module, name = kind.split(":")
    found = getattr(import_module(f"pulumi_aws.{module.partition('/')[0]}"), name)
    snake = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key) for key in REPLACES[kind]}

    assert snake <= set(inspect.signature(found._internal_init).parameters)
