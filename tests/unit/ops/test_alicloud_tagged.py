"""What of a stack lives in an account of Alibaba Cloud, with its answers made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ops.clouds.alicloud.account import Account
from ops.clouds.alicloud.tagged_resources import resources
from ops.engine import state_repair

TAGS = {"gpufleet:stack": "prod"}


class Bought(Account):
    """Two assurances, of which the Tag Service tells as well."""

    def call(self, product: str, action: str, **query: Any) -> Mapping[str, Any]:
        states = {"eap-over": "Released", "eap-paid": "Active"}
        arns = [f"arn:acs:ecs:cn-beijing:1234567890123456:elasticityassurance/{id_}" for id_ in states]
        tags = {"Tag": [{"TagKey": key, "TagValue": value} for key, value in TAGS.items()]}
        both = {"Tags": tags, "EndTime": "2027-02-21T16:00Z"}
        items = [{"PrivatePoolOptionsId": id_, "Status": state, **both} for id_, state in states.items()]
        return {
            "ListTagResources": {"TagResources": [{"ResourceARN": arn, "Tags": []} for arn in arns]},
            "DescribeInstances": {"Instances": {"Instance": []}},
            "DescribeElasticityAssurances": {"ElasticityAssuranceSet": {"ElasticityAssuranceItem": items}},
        }[action]


def test_an_assurance_lives_until_it_has_run_out() -> None:
    (bought,) = resources(Bought("cn-beijing"), TAGS)

    assert (bought.kind, bought.id, bought.ends) == ("ecs/elasticityassurance", "eap-paid", "2027-02-21T16:00Z")


def test_what_is_kept_says_until_when_it_is_paid() -> None:
    bought = {"type": "a:b:C", "id": "eap-1", "protect": True, "outputs": {"endTime": "2027-02-21T16:00Z"}}
    plain = {"type": "a:b:D", "id": "d", "protect": True}

    lines = state_repair.protected({"deployment": {"resources": [bought, plain, {**plain, "protect": False}]}})

    assert lines == ["a:b:C eap-1 (paid until 2027-02-21T16:00Z)", "a:b:D d"]
