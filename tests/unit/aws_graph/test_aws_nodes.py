"""What a group of nodes declares: its template, and what starts machines from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from graph_clusters import ELASTIC, FABRIC
from rendered import inputs, planned, render, the, trainer

from infra.clouds.aws.resources.nodes.launch_template import dollars
from infra.graph import Graph

Rendered = Callable[[str], Graph]


def test_a_fabric_node_has_one_address_and_four_efa_cards(graph_of: Rendered) -> None:
    cards = trainer(graph_of("fabric"))["networkInterfaces"]

    assert [(card["networkCardIndex"], card["deviceIndex"], card.get("interfaceType")) for card in cards] == [
        (0, 0, None),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]
    assert {card["deleteOnTermination"] for card in cards} == {"true"}
    assert all(card["securityGroups"] == ["${trainer-firewall.id}"] for card in cards)


def test_several_interfaces_say_nothing_of_public_addresses_and_subnets(graph_of: Rendered) -> None:
    cards = trainer(graph_of("fabric"))["networkInterfaces"]

    assert not {"associatePublicIpAddress", "subnetId"} & {key for card in cards for key in card}


def test_a_reservation_is_targeted_by_its_id_without_preference_or_group(graph_of: Rendered) -> None:
    template = trainer(graph_of("fabric"))

    assert template["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
    }
    assert not {"placement", "instanceMarketOptions"} & set(template)
    assert graph_of("fabric").of("PlacementGroup") == []


def test_a_reservation_in_a_group_is_met_in_that_group(root: Path) -> None:
    arn = "arn:aws:ec2:us-east-1:123456789012:placement-group/ours"
    text = FABRIC.replace("id: cr-0123456789abcdef0", f"id: cr-0123456789abcdef0, placement_group: {arn}")

    assert trainer(render(planned(root, text), root))["placement"] == {"groupName": "ours"}


def test_a_capacity_block_has_its_market_its_target_and_no_group(graph_of: Rendered) -> None:
    graph = graph_of("block")
    template = trainer(graph)

    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert "capacityReservationTarget" in template["capacityReservationSpecification"]
    assert "placement" not in template
    assert inputs(graph, "Fleet")["targetCapacitySpecification"]["defaultTargetCapacityType"] == "capacity-block"
    assert not {"spotOptions", "onDemandOptions"} & set(inputs(graph, "Fleet"))


def test_a_p5_block_has_33_interfaces(graph_of: Rendered) -> None:
    assert len(trainer(graph_of("block"))["networkInterfaces"]) == 33


def test_a_spot_gang_is_capped_refilled_and_ends_with_the_stack(graph_of: Rendered) -> None:
    fleet = inputs(graph_of("spot"), "Fleet")

    assert (fleet["type"], fleet["replaceUnhealthyInstances"]) == ("maintain", True)
    assert fleet["spotOptions"] == {
        "allocationStrategy": "diversified",
        "instanceInterruptionBehavior": "terminate",
    }
    assert [one["maxPrice"] for one in fleet["launchTemplateConfigs"][0]["overrides"]] == ["14"]
    assert fleet["terminateInstances"] is fleet["terminateInstancesWithExpiration"] is True
    assert "instanceMarketOptions" not in trainer(graph_of("spot"))


def test_an_on_demand_gang_is_all_or_nothing(graph_of: Rendered) -> None:
    fleet = inputs(graph_of("fabric"), "Fleet")

    assert fleet["type"] == "instant"
    assert fleet["onDemandOptions"] == {
        "minTargetCapacity": 4,
        "singleAvailabilityZone": True,
        "singleInstanceType": True,
    }


def test_another_size_of_an_instant_fleet_is_another_fleet(graph_of: Rendered) -> None:
    assert "targetCapacitySpecification.totalTargetCapacity" in the(graph_of("fabric"), "Fleet").replaced_on
    assert the(graph_of("spot"), "Fleet").replaced_on == ()


def test_the_division_of_a_spot_gang_is_not_the_program_s(graph_of: Rendered) -> None:
    assert the(graph_of("spot"), "Fleet").ignores == (
        "targetCapacitySpecification.onDemandTargetCapacity",
        "targetCapacitySpecification.spotTargetCapacity",
    )


def test_a_spot_gang_stands_in_a_group_of_its_own(graph_of: Rendered) -> None:
    assert inputs(graph_of("spot"), "PlacementGroup")["strategy"] == "cluster"
    assert trainer(graph_of("spot"))["placement"] == {"groupName": "${trainer-placement.name}"}


def test_an_elastic_group_mixes_markets_in_every_zone(graph_of: Rendered) -> None:
    group = inputs(graph_of("elastic"), "autoscaling/group:Group", "server-scaling")

    assert (group["minSize"], group["maxSize"], "desiredCapacity" in group) == (1, 6, False)
    assert group["vpcZoneIdentifiers"] == ["${private-us-east-1a.id}", "${private-us-east-1b.id}"]
    assert group["mixedInstancesPolicy"]["instancesDistribution"] == {
        "onDemandBaseCapacity": 1,
        "onDemandPercentageAboveBaseCapacity": 0,
        "spotAllocationStrategy": "price-capacity-optimized",
        "spotMaxPrice": "0.6",
    }
    assert "launchTemplate" not in group


def test_an_elastic_group_follows_the_load_of_its_own_gpus(graph_of: Rendered) -> None:
    policy = inputs(graph_of("elastic"), "autoscaling/policy:Policy", "server-scaling-by-gpu-load")
    tracked = policy["targetTrackingConfiguration"]

    assert tracked["targetValue"] == 85
    assert tracked["customizedMetricSpecification"]["metricDimensions"] == [
        {"name": "stack", "value": "elastic"},
        {"name": "group", "value": "server"},
    ]


def test_a_reserved_elastic_group_takes_its_template_plain(root: Path) -> None:
    reserved = "market: {kind: reservation, id: cr-0123456789abcdef0}, zone: us-east-1a"
    text = ELASTIC.replace("min: 1, max: 2", f"min: 1, max: 2, {reserved}")

    group = inputs(render(planned(root, text), root), "autoscaling/group:Group", "steady-scaling")

    assert group["launchTemplate"] == {"id": "${steady-template.id}", "version": "$Default"}
    assert "mixedInstancesPolicy" not in group


@pytest.mark.parametrize(("price", "text"), [(14.0, "14"), (0.6, "0.6"), (0.00012, "0.00012"), (31.212, "31.212")])
def test_a_price_is_written_without_exponent(price: float, text: str) -> None:
    assert dollars(price) == text


def test_the_head_outlives_a_newer_template_and_changes_its_type_in_place(graph_of: Rendered) -> None:
    head = the(graph_of("fabric"), "Instance")

    assert head.inputs["instanceType"] == "m6i.large"
    assert head.ignores == ("launchTemplate", "userData")
