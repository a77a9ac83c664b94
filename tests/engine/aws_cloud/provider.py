"""`pulumi-resource-aws`: the protocol of `cloud_provider`, with the provider's default tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud_provider import arguments
from cloud_provider.provider import Provider, serve
from cloud_provider.store import Row
from cloud_provider.wire import Value
from pulumi.runtime.rpc import UNKNOWN

from aws_cloud import fleets, images
from aws_cloud.cloud import KINDS, Cloud
from aws_cloud.kinds_ec2 import FLEET
from aws_cloud.kinds_services import BUCKET, NODE_GROUP, SCALING_GROUP

PARAMETER = "aws:ssm/getParameter:getParameter"


class Aws(Provider):
    """It waits for the machines of groups; it does not for those of a fleet."""

    package = "aws"
    kinds = KINDS
    described = "tests/engine/aws_cloud/kinds_services.py"
    waited_for = frozenset({SCALING_GROUP, NODE_GROUP})
    small = frozenset({BUCKET})
    default_tags: Mapping[str, str] = {}

    def connect(self, region: str) -> Cloud:
        return Cloud(self.store, region)

    def configure(self, given: Mapping[str, Any]) -> None:
        super().configure(given)
        self.default_tags = (given.get("defaultTags") or {}).get("tags") or {}

    def answer(self, token: str, asked: Value) -> Value | None:
        return images.parameter(asked["name"], self.cloud.region) if token == PARAMETER else None

    def tags(self, type_: str, inputs: Mapping[str, Any]) -> dict[str, str]:
        """All tags that a resource will have; a scaling group's own form reaches nothing but the group."""
        own = inputs.get("tags") or {}
        if arguments.taggable(type_):
            return {**self.default_tags, **own}
        return {tag["key"]: tag["value"] for tag in own}

    def refused(self, type_: str, inputs: Value) -> list[str]:
        return fleets.problems(inputs) if type_ == FLEET else []

    def completed(self, type_: str, inputs: Value) -> Value:
        return fleets.stated(inputs) if type_ == FLEET else inputs

    def compared(self, type_: str, have: Value, inputs: Value) -> Value:
        return fleets.wanted(have, inputs) if type_ == FLEET else inputs

    def expected(self, type_: str, inputs: Value) -> Value:
        """What a preview knows of a resource: its inputs and its tags."""
        if not arguments.taggable(type_):
            return inputs
        known = inputs.get("tags") != UNKNOWN
        return {**inputs, "tagsAll": self.tags(type_, inputs) if known else UNKNOWN}

    def properties(self, row: Row, inputs: Mapping[str, Any]) -> Value:
        """The whole resource. Of its tags, those are its own that are no defaults, or that its inputs name too."""
        told = fleets.told(row.properties) if row.type == FLEET else row.properties
        if not arguments.taggable(row.type):
            return told
        stated = inputs.get("tags") or {}
        own = {key: tag for key, tag in row.tags.items() if key in stated or self.default_tags.get(key) != tag}
        return {**told, "tags": own, "tagsAll": row.tags}


if __name__ == "__main__":
    serve(Aws, "AWS_CLOUD")
