"""The other services, as boto3 asks for them. Shapes: the API reference of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cloud_provider.store import Row

from aws_cloud.answers import Answer, Answering, Asked, View, only, page, selected, tags
from aws_cloud.cloud import KINDS, gone
from aws_cloud.kinds import ACCOUNT
from aws_cloud.kinds_services import SCALING_GROUP

RESOURCES_A_PAGE = 100  # at most (GetResources, ResourcesPerPage)


def _caller(view: View, asked: Asked) -> Answer:
    return {"Account": ACCOUNT, "UserId": "AIDAEXAMPLE", "Arn": f"arn:aws:iam::{ACCOUNT}:user/tests"}


def _resources(view: View, asked: Asked) -> Answer:
    wanted = [(one["Key"], one.get("Values") or []) for one in asked.get("TagFilters") or []]
    named = [
        row
        for row in view.store.rows("arn != '' and tags != '{}' and region = ?", view.region)
        if KINDS[row.type].listed
        and all(key in row.tags and (not values or row.tags[key] in values) for key, values in wanted)
    ]
    rows, token = page(named, asked.get("PaginationToken"), int(asked.get("ResourcesPerPage") or RESOURCES_A_PAGE))
    mapped = [{"ResourceARN": row.arn, "Tags": tags(row)} for row in rows]
    return {"ResourceTagMappingList": mapped, "PaginationToken": token or ""}


def _key(view: View, asked: Asked) -> Answer:
    wanted = asked["KeyId"].rpartition("/")[2]
    row = only(
        view.store.rows("id = ? and region = ?", wanted, view.region),
        "NotFoundException",
        f"Key '{wanted}' does not exist",
    )
    told = {"KeyId": row.id, "Arn": row.arn, "KeyState": row.state or "Enabled", "Enabled": not gone(row)}
    return {"KeyMetadata": {**told, **({"DeletionDate": datetime.now(UTC)} if gone(row) else {})}}


def _roles(view: View, asked: Asked) -> Answer:
    return {
        "Roles": [
            {
                "RoleName": row.id,
                "Arn": row.arn,
                "Path": "/",
                "RoleId": row.outputs["uniqueId"],
                "CreateDate": datetime.now(UTC),
            }
            for row in view.store.of("aws:iam/role:Role")
        ],
        "IsTruncated": False,
    }


def _service_role(view: View, asked: Asked) -> Answer:
    """The account is one that has used every service before."""
    name = asked["RoleName"]
    arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"
    return {
        "Role": {"RoleName": name, "Arn": arn, "Path": "/", "RoleId": "AROAEXAMPLE", "CreateDate": datetime.now(UTC)}
    }


def _role_tags(view: View, asked: Asked) -> Answer:
    return {"Tags": tags(_role(view, asked)), "IsTruncated": False}


def _role_policies(view: View, asked: Asked) -> Answer:
    policies = [row.inputs for row in view.store.of("aws:iam/rolePolicy:RolePolicy")]
    names = [policy["name"] for policy in policies if policy["role"] == _role(view, asked).id]
    return {"PolicyNames": names, "IsTruncated": False}


def _role(view: View, asked: Asked) -> Row:
    name = asked["RoleName"]
    rows = view.store.rows("type = 'aws:iam/role:Role' and id = ?", name)
    return only(rows, "NoSuchEntity", f"The role with name {name} cannot be found.")


def _targets(view: View, asked: Asked) -> Answer:
    targets = [row.inputs for row in view.rows("aws:cloudwatch/eventTarget:EventTarget")]
    return {"Targets": [{"Id": one["targetId"], "Arn": one["arn"]} for one in targets if one["rule"] == asked["Rule"]]}


def _scaling_groups(view: View, asked: Asked) -> Answer:
    return {
        "AutoScalingGroups": [
            {
                "AutoScalingGroupName": row.id,
                "AutoScalingGroupARN": row.arn,
                "MinSize": row.inputs["minSize"],
                "MaxSize": row.inputs["maxSize"],
                "DesiredCapacity": row.inputs.get("desiredCapacity") or row.inputs["minSize"],
                "DefaultCooldown": 300,
                "AvailabilityZones": [],
                "HealthCheckType": "EC2",
                "CreatedTime": datetime.now(UTC),
                "Instances": [
                    {
                        "InstanceId": one.id,
                        "AvailabilityZone": one.outputs["availabilityZone"],
                        "LifecycleState": "InService",
                        "HealthStatus": "Healthy",
                        "ProtectedFromScaleIn": False,
                    }
                    for one in view.store.rows("maker = ? and state = 'running'", row.id)
                ],
                "Tags": [
                    {**tag, "ResourceId": row.id, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
                    for tag in tags(row)
                ],
            }
            for row in selected(view, SCALING_GROUP, asked, "AutoScalingGroupNames", {})
        ]
    }


def _scaling_policies(view: View, asked: Asked) -> Answer:
    group = asked.get("AutoScalingGroupName")
    rows = view.rows("aws:autoscaling/policy:Policy")
    return {
        "ScalingPolicies": [
            {
                "AutoScalingGroupName": row.inputs["autoscalingGroupName"],
                "PolicyName": row.inputs["name"],
                "PolicyARN": row.outputs["arn"],
                "PolicyType": row.inputs.get("policyType", "SimpleScaling"),
            }
            for row in rows
            if group in {None, row.inputs["autoscalingGroupName"]}
        ]
    }


def _budgets(view: View, asked: Asked) -> Answer:
    rows = view.store.of("aws:budgets/budget:Budget")
    return {
        "Budgets": [{"BudgetName": row.inputs["name"], "TimeUnit": "MONTHLY", "BudgetType": "COST"} for row in rows]
    }


def _budget_tags(view: View, asked: Asked) -> Answer:
    arn = asked["ResourceARN"]
    return {"ResourceTags": tags(only(view.store.rows("arn = ?", arn), "NotFoundException", f"{arn} does not exist"))}


SERVICE_ANSWERS: Mapping[tuple[str, str], Answering] = {
    ("sts", "GetCallerIdentity"): _caller,
    ("tagging", "GetResources"): _resources,
    ("kms", "DescribeKey"): _key,
    ("iam", "ListRoles"): _roles,
    ("iam", "GetRole"): _service_role,
    ("iam", "ListRoleTags"): _role_tags,
    ("iam", "ListRolePolicies"): _role_policies,
    ("events", "ListTargetsByRule"): _targets,
    ("autoscaling", "DescribeAutoScalingGroups"): _scaling_groups,
    ("autoscaling", "DescribePolicies"): _scaling_policies,
    ("budgets", "DescribeBudgets"): _budgets,
    ("budgets", "ListTagsForResource"): _budget_tags,
}
