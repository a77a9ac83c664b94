"""The command line on AWS, from a price that is agreed to a cloud that is empty: one stack, its life in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from aws_cloud.answers_offers import BLOCK_OFFERING
from aws_cloud.kinds_ec2 import BLOCK, FLEET, INSTANCE, VOLUME, VPC
from aws_cloud.kinds_services import BUCKET, OBJECT
from aws_life import life, life_of, shipped_cluster
from cloud_life import Life
from cloud_provider.store import Row
from engine_runner import EngineRunner


@pytest.fixture(scope="module")
def dev(pulumi: EngineRunner) -> Iterator[Life]:
    with life(pulumi, "dev-g5", "dev") as one:
        yield one


def test_without_a_yes_nothing_is_made(dev: Life) -> None:
    answer = dev("up", check=False)

    assert answer.returncode == 2
    assert "create this for 1.03 USD/h?" in answer.stderr
    assert answer.stderr.endswith("not a terminal: pass --yes to confirm\n")
    assert dev.store.rows() == []


def test_a_key_that_is_not_here_is_told_before_anything_is_made(dev: Life) -> None:
    answer = dev("up", "--yes", check=False)

    assert answer.returncode == 1
    assert answer.stderr.startswith("cluster.access.public_key: its private half is not on this computer: link it to ")
    assert dev.store.rows() == []


@pytest.mark.drill
def test_nodes_that_aws_does_not_have_are_named_and_no_longer_asked_for(dev: Life) -> None:
    answer = dev("up", "--yes", "--no-wait", check=False, AWS_CLOUD_FAULTS="capacity:aws:ec2/fleet:Fleet")

    assert answer.returncode == 1
    assert answer.stderr.startswith("dev: AWS gives 0 of 1 g5.xlarge: There is no Spot or On-Demand capacity available")
    assert "the request is cancelled: `gpufleet up dev` requests it again;" in answer.stderr
    assert [row.type for row in dev.alive() if row.type in {FLEET, INSTANCE, VOLUME}] == []


def test_up_makes_what_status_then_tells(dev: Life) -> None:
    assert dev.up()["recover"].startswith("0 found")
    assert (dev.duplicates(), dev.orphans()) == ([], [])

    document = json.loads(dev("status", "--json").stdout)

    (node,) = document["nodes"]
    waits = "its host key is not in its console output yet"
    assert (node["group"], node["state"], node["reason"]) == ("dev", "starting", waits)
    assert document["cost"]["hourly"] == pytest.approx(1.0343, abs=1e-4)


def test_a_lost_state_is_found_again_by_tags_and_nothing_is_made_twice(dev: Life) -> None:
    before = {row.id for row in dev.alive()}
    dev.forget()

    assert not dev.up()["recover"].startswith("0 found")

    assert {row.id for row in dev.alive()} == before
    assert (dev.duplicates(), dev.orphans()) == ([], [])
    dev.pulumi("preview", "--refresh", "--expect-no-changes", "--stack", dev.stack)


def test_an_orphan_is_listed_and_deleted_and_nothing_else(dev: Life) -> None:
    kept = {row.id for row in dev.alive()}
    table = next(row for row in dev.alive() if row.type.endswith(":RouteTable"))
    orphan = "rtb-0123456789abcdef0"
    dev.store.put([replace(table, id=orphan, arn=table.arn.replace(table.id, orphan))])

    asked = dev("sweep", "--delete", check=False)

    assert asked.returncode == 2  # nobody said yes
    head = "dev: 1 orphaned resource: tagged, but not in the Pulumi state\n"
    listed = f"{head}  ec2/route-table {orphan} {table.tags['gpufleet:name']}\n"
    assert asked.stderr.startswith(listed)

    dev("sweep", "--delete", "--yes")

    assert {row.id for row in dev.alive()} == kept


def test_down_names_what_it_ends_and_leaves_an_empty_cloud_even_without_a_state(dev: Life) -> None:
    answer = dev("down", check=False)
    assert "take down stack dev, with the disks of its nodes, which ends 1.03 USD/h?" in answer.stderr
    assert dev.alive() != []
    dev.forget()

    document = json.loads(dev("down", "--yes", "--json").stdout)

    assert [phase["note"] for phase in document["phases"] if phase["phase"] == "sweep"] == ["nothing left behind"]
    assert dev.alive() == []
    assert dev("down", "--yes").stdout == "stack dev is not up: nothing to take down\n"


@pytest.mark.drill
@pytest.mark.parametrize("shipped", ["a100-spot", "inference-g6"])
def test_orphans_are_deleted_instances_included(pulumi: EngineRunner, shipped: str) -> None:
    with life(pulumi, shipped, f"swept-{shipped}") as one:
        one.up()
        one.forget()

        one("sweep", "--delete", "--yes")

        assert one.alive() == []


def test_a_gang_on_spot_stays_through_an_up_even_with_a_part_on_demand(pulumi: EngineRunner) -> None:
    with life(pulumi, "a100-spot", "kept") as one:
        one.up()
        (fleet,) = (row for row in one.alive() if row.type == FLEET)
        one.up()
        target = {**fleet.inputs["targetCapacitySpecification"], "onDemandTargetCapacity": 1, "spotTargetCapacity": 3}
        one.store.put([replace(fleet, inputs={**fleet.inputs, "targetCapacitySpecification": target})])
        one.up()

        assert [row.id for row in one.alive() if row.type == FLEET] == [fleet.id]


def test_what_aws_does_not_let_go_keeps_nothing_that_costs(pulumi: EngineRunner) -> None:
    target = "aws:cloudwatch/eventTarget:EventTarget"
    with life(pulumi, "a100-spot", "full") as one:
        one.up()
        bucket = next(row for row in one.alive() if row.type == BUCKET and not row.inputs["forceDestroy"])
        one.store.put([Row(type=OBJECT, id="kept", inputs={"bucket": bucket.id, "key": "runs/a/manifest.json"})])

        failed = one("down", "--yes", check=False, AWS_CLOUD_FAULTS=f"fail:{target}")

        assert failed.returncode == 1
        assert "UnauthorizedOperation" in failed.stderr  # a target is among the first to go, the bucket among the last
        assert f"BucketNotEmpty: {bucket.id} still holds runs/a/manifest.json" in failed.stderr
        still = failed.stderr.partition("re-run `gpufleet down full` to resume; still present:\n")[2].split()
        assert {target, BUCKET, bucket.id} <= {*still}
        free = {VPC, "aws:kms/key:Key", "aws:cloudwatch/eventRule:EventRule", "aws:sqs/queue:Queue"}
        assert {row.type for row in one.alive()} - free == {target, BUCKET, OBJECT}


@pytest.mark.drill
def test_a_block_that_was_bought_outlives_down_and_is_not_bought_again(pulumi: EngineRunner) -> None:
    sentence = f"buy {BLOCK_OFFERING} for at most 40000 USD, never refunded"
    bought = {"offering": BLOCK_OFFERING, "hours": 48, "usd_at_most": 40000, "confirm": sentence}
    asked = shipped_cluster("h100-block")
    asked["zone"], asked["nodes"][-1]["market"] = "us-east-1a", {"kind": "block", "buy": bought}
    with life_of(pulumi, asked, "bought") as one:
        one.up()

        document = one("down", "--yes")

        (block,) = one.alive()
        assert block.type == BLOCK
        kept = f"kept        {BLOCK} {block.id} (paid until 2026-12-01T11:30Z): it is protected"
        assert kept in document.stdout

        one.up()

        assert [row.id for row in one.alive() if row.type == BLOCK] == [block.id]
