"""Data at rest is encrypted, and its key rotates (EBS User Guide, "Encryption"; KMS Developer Guide, "Rotate keys")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.clouds.aws.policy.types import INSTANCE, KEY, LAUNCH_CONFIGURATION, LAUNCH_TEMPLATE, SPOT_INSTANCE
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import false, mapping, nested, true

ENCRYPTED = (
    "aws:ebs/volume:Volume",
    "aws:ebs/snapshotCopy:SnapshotCopy",
    "aws:ec2/amiCopy:AmiCopy",
    "aws:efs/fileSystem:FileSystem",
)
BY_DEFAULT = "aws:ebs/encryptionByDefault:EncryptionByDefault"
QUEUE, TOPIC = "aws:sqs/queue:Queue", "aws:sns/topic:Topic"
ASYMMETRIC = ("RSA_", "ECC_", "HMAC_", "SM2", "ML_DSA_")


@rule("encrypted-volumes", LAUNCH_TEMPLATE)
def encrypted_template_volumes(resource: Resource) -> Iterator[Violation]:
    """A template encrypts every volume; one that names none takes the image's, encrypted or not."""
    mappings = list(nested(resource.inputs, "blockDeviceMappings"))
    volumes = [(path, item) for path, item in mappings if not _no_volume(item)]
    if not volumes:
        yield "blockDeviceMappings", "name the root volume and encrypt it: the image's own may not be"
    for path, item in volumes:
        if not true(mapping(item.get("ebs")).get("encrypted")):
            yield f"{path}.ebs.encrypted", "must be true: what the disk holds outlives the node in snapshots"


@rule("encrypted-instance-volumes", INSTANCE, SPOT_INSTANCE, LAUNCH_CONFIGURATION)
def encrypted_instance_volumes(resource: Resource) -> Iterator[Violation]:
    """An instance encrypts every volume; made of a template, it has the template's."""
    if resource.inputs.get("launchTemplate") and "rootBlockDevice" not in resource.inputs:
        return
    if not true(mapping(resource.inputs.get("rootBlockDevice")).get("encrypted")):
        yield "rootBlockDevice.encrypted", "must be true"
    for path, item in nested(resource.inputs, "ebsBlockDevices"):
        if not true(item.get("encrypted")):
            yield f"{path}.encrypted", "must be true"


@rule("encrypted-storage", *ENCRYPTED)
def encrypted_storage(resource: Resource) -> Iterator[Violation]:
    """Volumes, copies of them and file systems are encrypted."""
    if not true(resource.inputs.get("encrypted")):
        yield "encrypted", "must be true"


@rule("kms-rotation", KEY)
def kms_rotation(resource: Resource) -> Iterator[Violation]:
    """A key rotates; only symmetric ones can."""
    spec = str(resource.inputs.get("customerMasterKeySpec", ""))
    if not spec.startswith(ASYMMETRIC) and not true(resource.inputs.get("enableKeyRotation")):
        yield "enableKeyRotation", "must be true: a key that leaks once would open everything for ever"


@rule("encrypted-by-default", BY_DEFAULT)
def encrypted_by_default(resource: Resource) -> Iterator[Violation]:
    """The account's own default is not switched off."""
    if false(resource.inputs.get("enabled", True)):
        yield "enabled", "must be true: it is the last guard of what a template forgets"


@rule("encrypted-messages", QUEUE, TOPIC)
def encrypted_messages(resource: Resource) -> Iterator[Violation]:
    """Queues are encrypted unless told not to be (SQS, "Encryption at rest"), topics only when a key is named."""
    if resource.inputs.get("kmsMasterKeyId"):
        return
    if resource.type == TOPIC:
        yield "kmsMasterKeyId", "must be set: a topic without a key is not encrypted"
    elif false(resource.inputs.get("sqsManagedSseEnabled", True)):
        yield "sqsManagedSseEnabled", "must be true, or a key named"


def _no_volume(item: Mapping[str, Any]) -> bool:
    """Local disks (encrypted by the hardware) and removed mappings have no EBS volume."""
    return "ebs" not in item and bool(item.get("virtualName") or not false(item.get("noDevice")))
