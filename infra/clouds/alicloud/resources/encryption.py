"""The stack's own key: disks, buckets and the secrets of a cluster are encrypted with it.

Source: KMS User Guide, "Key rotation" (a default key in 365 days and no other interval; it takes no policy of its own).
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_alicloud import kms

from infra.clouds.alicloud.plan.model import KeyPlan


@dataclass(frozen=True, kw_only=True)
class EncryptionArgs:
    """What the key needs."""

    plan: KeyPlan


class Encryption(ComponentResource):
    """The key, rotated by KMS. key_arn: as RAM names it."""

    key_id: Output[str]
    key_arn: Output[str]

    def __init__(self, name: str, args: EncryptionArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Encryption", name, {}, opts)
        key = kms.Key(
            f"{name}-key",
            description="gpufleet: everything this stack keeps",
            automatic_rotation="Enabled",
            rotation_interval=f"{args.plan.rotation_days}d",
            pending_window_in_days=args.plan.deletion_days,
            opts=ResourceOptions(parent=self),
        )
        self.key_id, self.key_arn = key.id, key.arn
        self.register_outputs({"key_id": self.key_id})
