"""EC2, as boto3 asks for it. Shapes: EC2 API Reference."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime

from cloud_provider.store import Row

from aws_cloud.answers import Answer, Answering, Asked, View, only, page, selected, tags
from aws_cloud.cloud import Cloud, gone
from aws_cloud.kinds_ec2 import INSTANCE, INTERFACE, TEMPLATE, VOLUME

STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
INSTANCES_A_PAGE = 1000  # at most (DescribeInstances, MaxResults)


def _describe_instances(view: View, asked: Asked) -> Answer:
    found = selected(view, INSTANCE, asked, "InstanceIds", {"instance-state-name": _state, "instance-id": _id})
    rows, token = page(found, asked.get("NextToken"), int(asked.get("MaxResults") or INSTANCES_A_PAGE))
    return {
        "Reservations": [{"ReservationId": f"r-{row.id[2:]}", "Instances": [_instance(view, row)]} for row in rows],
        "NextToken": token,
    }


def _instance(view: View, row: Row) -> Answer:
    told, over = row.properties, gone(row)
    parts = view.store.rows("maker = ?", row.id)
    template = told.get("launchTemplate") or {}
    return {
        "InstanceId": row.id,
        "ImageId": told["ami"],
        "InstanceType": told["instanceType"],
        "KeyName": told["keyName"] or None,
        "LaunchTime": told["launchTime"],
        "State": {"Name": row.state, "Code": STATE_CODES[row.state]},
        "StateReason": {"Code": "Client.UserInitiatedShutdown", "Message": "User initiated shutdown"} if over else None,
        "Placement": {"AvailabilityZone": told["availabilityZone"]},
        "PrivateDnsName": "" if over else told["privateDns"],
        "PrivateIpAddress": None if over else told["privateIp"],
        "PublicIpAddress": None if over else told["publicIp"] or None,
        "SubnetId": None if over else told["subnetId"],
        "SecurityGroups": [] if over else [{"GroupId": group} for group in told["vpcSecurityGroupIds"]],
        "NetworkInterfaces": [{"NetworkInterfaceId": part.id} for part in parts if part.type == INTERFACE],
        "BlockDeviceMappings": [{"Ebs": {"VolumeId": part.id}} for part in parts if part.type == VOLUME],
        "Tags": [*tags(row), {"Key": "aws:ec2launchtemplate:id", "Value": template.get("id", "")}],
    }


def _terminate(view: View, asked: Asked) -> Answer:
    rows = selected(view, INSTANCE, asked, "InstanceIds", {})
    Cloud(view.store, view.region).terminate([row for row in rows if not gone(row)])
    return {
        "TerminatingInstances": [
            {"InstanceId": row.id, "PreviousState": _coded(row.state), "CurrentState": _coded("terminated")}
            for row in rows
        ]
    }


def _console(view: View, asked: Asked) -> Answer:
    """What a test let the machine say, in its output `console`; a fresh machine has said nothing yet."""
    row = only(view.store.rows("id = ?", asked["InstanceId"]), "InvalidInstanceID.NotFound", asked["InstanceId"])
    said = b64encode(row.outputs.get("console", "").encode()).decode()
    return {"InstanceId": row.id, "Output": said, "Timestamp": datetime.now(UTC)}


def _route_tables(view: View, asked: Asked) -> Answer:
    routes, joined = view.rows("aws:ec2/route:Route"), view.rows("aws:ec2/routeTableAssociation:RouteTableAssociation")
    return {
        "RouteTables": [
            {
                "RouteTableId": row.id,
                "VpcId": row.inputs["vpcId"],
                "Routes": [_route(route) for route in routes if route.inputs["routeTableId"] == row.id],
                "Associations": [
                    {"RouteTableAssociationId": one.id, "RouteTableId": row.id, "SubnetId": one.inputs.get("subnetId")}
                    for one in joined
                    if one.inputs["routeTableId"] == row.id
                ],
                "Tags": tags(row),
            }
            for row in selected(view, "aws:ec2/routeTable:RouteTable", asked, "RouteTableIds", {"route-table-id": _id})
        ]
    }


def _route(row: Row) -> Answer:
    names = {
        "DestinationCidrBlock": "destinationCidrBlock",
        "DestinationIpv6CidrBlock": "destinationIpv6CidrBlock",
        "GatewayId": "gatewayId",
        "NatGatewayId": "natGatewayId",
        "Origin": "origin",
        "State": "state",
    }
    return {name: row.properties.get(ours) for name, ours in names.items()}


def _key_pairs(view: View, asked: Asked) -> Answer:
    rows = selected(view, "aws:ec2/keyPair:KeyPair", asked, "KeyNames", {"key-name": _id})
    return {"KeyPairs": [{"KeyName": row.id, "KeyPairId": row.outputs["keyPairId"], "Tags": tags(row)} for row in rows]}


def _nat_gateways(view: View, asked: Asked) -> Answer:
    rows = selected(
        view, "aws:ec2/natGateway:NatGateway", asked, "NatGatewayIds", {"state": _available, "nat-gateway-id": _id}
    )
    return {
        "NatGateways": [
            {"NatGatewayId": row.id, "State": _available(row), "SubnetId": row.inputs["subnetId"], "Tags": tags(row)}
            for row in rows
        ]
    }


def _security_groups(view: View, asked: Asked) -> Answer:
    rows = selected(view, "aws:ec2/securityGroup:SecurityGroup", asked, "GroupIds", {"group-id": _id})
    return {
        "SecurityGroups": [
            {"GroupId": row.id, "GroupName": row.inputs["name"], "VpcId": row.inputs.get("vpcId"), "Tags": tags(row)}
            for row in rows
        ]
    }


def _templates(view: View, asked: Asked) -> Answer:
    rows = selected(view, TEMPLATE, asked, "LaunchTemplateIds", {})
    return {
        "LaunchTemplates": [
            {"LaunchTemplateId": row.id, "LaunchTemplateName": row.inputs["name"], "Tags": tags(row)} for row in rows
        ]
    }


def _state(row: Row) -> str:
    return row.state


def _available(row: Row) -> str:
    return row.state or "available"


def _id(row: Row) -> str:
    return row.id


def _coded(state: str) -> Answer:
    return {"Name": state, "Code": STATE_CODES[state]}


EC2_ANSWERS: Mapping[tuple[str, str], Answering] = {
    ("ec2", "DescribeInstances"): _describe_instances,
    ("ec2", "TerminateInstances"): _terminate,
    ("ec2", "GetConsoleOutput"): _console,
    ("ec2", "DescribeRouteTables"): _route_tables,
    ("ec2", "DescribeKeyPairs"): _key_pairs,
    ("ec2", "DescribeNatGateways"): _nat_gateways,
    ("ec2", "DescribeLaunchTemplates"): _templates,
    ("ec2", "DescribeSecurityGroups"): _security_groups,
}
