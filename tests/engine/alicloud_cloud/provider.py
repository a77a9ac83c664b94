"""`pulumi-resource-alicloud`: the protocol of `cloud_provider` on Alibaba Cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud_provider.provider import Provider, serve
from cloud_provider.store import Row
from cloud_provider.wire import Value

from alicloud_cloud.cloud import Cloud
from alicloud_cloud.kinds import BUCKET, CREDENTIAL, IMAGES, KINDS, NODE_POOL, SCALING_GROUP, TEMPLATE, VERSIONS

RELEASED = ("1.36.1-aliyun.1", "1.35.9-aliyun.1", "1.35.10-aliyun.2")


class Alicloud(Provider):
    """Of its data queries it answers those for an image, for a cluster's credential and for the versions of ACK."""

    package = "alicloud"
    kinds = KINDS
    described = "tests/engine/alicloud_cloud/kinds.py"
    waited_for = frozenset({SCALING_GROUP, NODE_POOL})
    small = frozenset({BUCKET})

    def connect(self, region: str) -> Cloud:
        return Cloud(self.store, region)

    def tags(self, type_: str, inputs: Mapping[str, Any]) -> dict[str, str]:
        """Those of a launch template are its machines', and its own have a name of their own."""
        return dict(inputs.get("templateTags") or {}) if type_ == TEMPLATE else super().tags(type_, inputs)

    def properties(self, row: Row, inputs: Mapping[str, Any]) -> Value:
        return row.properties if row.type == TEMPLATE else super().properties(row, inputs)

    def answer(self, token: str, asked: Value) -> Value | None:
        if token == CREDENTIAL:
            return {"certificateAuthorities": [{"clusterCert": "QQ==", "clientCert": "", "clientKey": ""}]}
        if token == VERSIONS:
            return {"id": "released", "metadatas": [{"version": each, "runtimes": []} for each in RELEASED]}
        image = "ubuntu_24_04_x64_20G_alibase_20260901.vhd"
        return {"id": image, "ids": [image], "images": [{"id": image}]} if token == IMAGES else None


if __name__ == "__main__":
    serve(Alicloud, "ALICLOUD_CLOUD")
