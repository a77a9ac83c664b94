"""EC2's fleets, as boto3 asks for them. Shapes and what is told of which type: EC2 API Reference."""

from __future__ import annotations

from collections.abc import Mapping

from cloud_provider.store import Row

from aws_cloud import machines
from aws_cloud.answers import Answer, Answering, Asked, View, selected, tags
from aws_cloud.cloud import Cloud, gone
from aws_cloud.kinds_ec2 import FLEET, INSTANCE

NO_CAPACITY = {
    "ErrorCode": "InsufficientInstanceCapacity",
    "ErrorMessage": "There is no Spot or On-Demand capacity available that matches your request.",
}


def _describe(view: View, asked: Asked) -> Answer:
    return {"Fleets": [_fleet(view, row) for row in selected(view, FLEET, asked, "FleetIds", {})]}


def _fleet(view: View, row: Row) -> Answer:
    started = view.store.rows("maker = ? and type = ?", row.id, INSTANCE)
    told = {
        "FleetId": row.id,
        "FleetState": row.state or "active",
        "Type": row.inputs.get("type", "maintain"),
        "FulfilledCapacity": len(machines.of(view.store, row)),
        "Tags": tags(row),
    }
    if machines.refills(row):
        return told
    instances = [{"InstanceIds": [machine.id for machine in started]}] if started else []
    return {**told, "Instances": instances, "Errors": [] if started else [NO_CAPACITY]}


def _delete(view: View, asked: Asked) -> Answer:
    rows = [row for row in selected(view, FLEET, asked, "FleetIds", {}) if not gone(row)]
    for row in rows:
        Cloud(view.store, view.region).delete(FLEET, row.id)
    return {"SuccessfulFleetDeletions": [{"FleetId": row.id} for row in rows], "UnsuccessfulFleetDeletions": []}


def _modify(view: View, asked: Asked) -> Answer:
    (row,) = selected(view, FLEET, {"FleetIds": [asked["FleetId"]]}, "FleetIds", {})
    target = {key[0].lower() + key[1:]: value for key, value in asked["TargetCapacitySpecification"].items()}
    wanted = {**row.inputs["targetCapacitySpecification"], **target}
    inputs = {**row.inputs, "targetCapacitySpecification": wanted}
    Cloud(view.store, view.region).update(FLEET, row.id, inputs, row.tags)
    return {"Return": True}


FLEET_ANSWERS: Mapping[tuple[str, str], Answering] = {
    ("ec2", "DescribeFleets"): _describe,
    ("ec2", "DeleteFleets"): _delete,
    ("ec2", "ModifyFleet"): _modify,
}
