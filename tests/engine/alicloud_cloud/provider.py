"""`pulumi-resource-alicloud`: the protocol of `cloud_provider` on Alibaba Cloud."""

from __future__ import annotations

from cloud_provider.provider import Provider, serve
from cloud_provider.wire import Value

from alicloud_cloud.cloud import Cloud
from alicloud_cloud.kinds import BUCKET, CREDENTIAL, IMAGES, KINDS, NODE_POOL, SCALING_GROUP


class Alicloud(Provider):
    """Of its data queries it answers those for an image and for a cluster's credential."""

    package = "alicloud"
    kinds = KINDS
    described = "tests/engine/alicloud_cloud/kinds.py"
    waited_for = frozenset({SCALING_GROUP, NODE_POOL})
    small = frozenset({BUCKET})

    def connect(self, region: str) -> Cloud:
        return Cloud(self.store, region)

    def answer(self, token: str, asked: Value) -> Value | None:
        if token == CREDENTIAL:
            return {"certificateAuthorities": [{"clusterCert": "QQ==", "clientCert": "", "clientKey": ""}]}
        image = "ubuntu_24_04_x64_20G_alibase_20260901.vhd"
        return {"id": image, "ids": [image], "images": [{"id": image}]} if token == IMAGES else None


if __name__ == "__main__":
    serve(Alicloud, "ALICLOUD_CLOUD")
