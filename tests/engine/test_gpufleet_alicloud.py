"""The command line on Alibaba Cloud, from an agreed price to a cloud that is empty: one stack, its life in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from alicloud_cloud.kinds import ASSURANCE, INSTANCE
from alicloud_life import life, life_of, shipped_cluster
from cloud_life import Life
from engine_runner import EngineRunner

CONSOLE = """-----BEGIN SSH HOST KEY KEYS-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB root@iz
-----END SSH HOST KEY KEYS-----
"""
pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def scc(pulumi: EngineRunner) -> Iterator[Life]:
    with life(pulumi, "aliyun-scc", "scc") as one:
        yield one


def test_without_a_yes_nothing_is_made(scc: Life) -> None:
    answer = scc("up", check=False)

    assert answer.returncode == 2
    assert "create this for " in answer.stderr
    assert scc.store.rows() == []


def test_up_makes_what_status_then_tells(scc: Life) -> None:
    assert scc.up()["recover"].startswith("0 found")
    assert (scc.duplicates(), scc.orphans()) == ([], [])

    nodes = json.loads(scc("status", "--json").stdout)["nodes"]

    waits = "its host key is not in its console output yet"
    assert {(node["state"], node["reason"]) for node in nodes} == {("starting", waits)}
    assert [node["group"] for node in nodes].count("head") == 1


def test_a_second_up_changes_nothing(scc: Life) -> None:
    before = scc.store.rows()

    assert scc.up()["resources"].startswith("0 changed")

    assert scc.store.rows() == before


def test_nodes_whose_console_has_spoken_are_reached_through_the_head(scc: Life) -> None:
    rows = scc.store.of(INSTANCE)
    scc.store.put([replace(row, outputs={**row.outputs, "console": CONSOLE}) for row in rows])

    nodes = json.loads(scc("status", "--json").stdout)["nodes"]

    assert {node["state"] for node in nodes} == {"unreachable"}  # nobody answers there, but the way is known


def test_a_lost_state_is_found_again_and_nothing_is_made_twice(scc: Life) -> None:
    before = {(row.type, row.id) for row in scc.alive()}
    scc.forget()

    assert not scc.up()["recover"].startswith("0 found")

    assert {(row.type, row.id) for row in scc.alive()} == before
    assert (scc.duplicates(), scc.orphans()) == ([], [])
    scc.pulumi("preview", "--refresh", "--expect-no-changes", "--stack", scc.stack)


def test_an_orphan_is_listed_and_deleted_and_nothing_else(scc: Life) -> None:
    existing = {(row.type, row.id) for row in scc.alive()}
    vswitch = next(row for row in scc.alive() if row.type.endswith(":Switch"))
    orphan = "vsw-0123456789abcdef"
    scc.store.put([replace(vswitch, id=orphan, arn=vswitch.arn.replace(vswitch.id, orphan))])

    assert scc.orphaned() == [f"vpc/vswitch {orphan} {vswitch.tags['gpufleet:name']}"]
    scc("sweep", "--delete", "--yes")

    assert {(row.type, row.id) for row in scc.alive()} == existing


def test_down_leaves_an_empty_cloud_even_without_a_state(scc: Life) -> None:
    scc.forget()

    scc("down", "--yes")

    assert scc.alive() == []


def test_an_assurance_that_was_bought_outlives_down_and_is_not_bought_again(pulumi: EngineRunner) -> None:
    asked = shipped_cluster("aliyun-a100")
    sentence = "buy an elasticity assurance for trainer for 3 months, never refunded"
    asked["nodes"][-1]["market"] = {"kind": "assurance", "months": 3, "confirm": sentence}
    with life_of(pulumi, asked, "assured") as one:
        one.up()
        one.forget()

        told = one("down", "--yes")

        (bought,) = one.alive()
        assert bought.type == ASSURANCE
        existing = f"kept        {ASSURANCE} {bought.id} (paid until 2027-02-21T16:00Z): it is protected"
        assert existing in told.stdout

        one.up()

        assert [row.id for row in one.alive() if row.type == ASSURANCE] == [bought.id]
        one.forget()
        one("sweep", "--delete", "--yes")
        assert one.alive() == [bought]
