"""Data at rest is encrypted, and its key rotates (EBS User Guide, "Encryption"; KMS Developer Guide, "Rotate keys")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.graph.policy.rule import Resource, Stack, Violation, rule
from infra.graph.policy.wire import (
    INSTANCE,
    LAUNCH_CONFIGURATION,
    LAUNCH_TEMPLATE,
    SPOT_INSTANCE,
    false,
    mapping,
    nested,
    true,
)

VOLUME = "aws:ebs/volume:Volume"
FILE_SYSTEM = "aws:efs/fileSystem:FileSystem"
KEY = "aws:kms/key:Key"
ASYMMETRIC = ("RSA_", "ECC_", "HMAC_", "SM2", "ML_DSA_")


@rule("encrypted-volumes", LAUNCH_TEMPLATE)
def encrypted_template_volumes(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """A template that names no volume takes the image's, encrypted or not."""
    mappings = list(nested(resource.inputs, "blockDeviceMappings"))
    volumes = [(path, item) for path, item in mappings if not _no_volume(item)]
    if not volumes:
        yield "blockDeviceMappings", "name the root volume and encrypt it: the image's own may not be"
    for path, item in volumes:
        if not true(mapping(item.get("ebs")).get("encrypted")):
            yield f"{path}.ebs.encrypted", "must be true: what the disk holds outlives the node in snapshots"


@rule("encrypted-instance-volumes", INSTANCE, SPOT_INSTANCE, LAUNCH_CONFIGURATION)
def encrypted_instance_volumes(resource: Resource, stack: Stack) -> Iterator[Violation]:
    if resource.inputs.get("launchTemplate") and "rootBlockDevice" not in resource.inputs:
        return
    if not true(mapping(resource.inputs.get("rootBlockDevice")).get("encrypted")):
        yield "rootBlockDevice.encrypted", "must be true"
    for path, item in nested(resource.inputs, "ebsBlockDevices"):
        if not true(item.get("encrypted")):
            yield f"{path}.encrypted", "must be true"


@rule("encrypted-storage", VOLUME, FILE_SYSTEM)
def encrypted_storage(resource: Resource, stack: Stack) -> Iterator[Violation]:
    if not true(resource.inputs.get("encrypted")):
        yield "encrypted", "must be true"


@rule("kms-rotation", KEY)
def kms_rotation(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """Only symmetric keys rotate."""
    spec = str(resource.inputs.get("customerMasterKeySpec", ""))
    if not spec.startswith(ASYMMETRIC) and not true(resource.inputs.get("enableKeyRotation")):
        yield "enableKeyRotation", "must be true: a key that leaks once would open everything for ever"


def _no_volume(item: Mapping[str, Any]) -> bool:
    """Local disks (encrypted by the hardware) and removed mappings have no EBS volume."""
    return "ebs" not in item and bool(item.get("virtualName") or not false(item.get("noDevice")))
