"""Nothing of a stack is given to all of AWS: images and disks hold what was on the machine.

Source: EC2 User Guide, "Block public access to AMIs" and "Block public access for snapshots".
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.policy.rule import Resource, Violation, rule

LAUNCH_PERMISSION = "aws:ec2/amiLaunchPermission:AmiLaunchPermission"
IMAGE_BLOCK = "aws:ec2/imageBlockPublicAccess:ImageBlockPublicAccess"
SNAPSHOT_BLOCK = "aws:ebs/snapshotBlockPublicAccess:SnapshotBlockPublicAccess"
BLOCKING = {IMAGE_BLOCK: ("block-new-sharing",), SNAPSHOT_BLOCK: ("block-new-sharing", "block-all-sharing")}


@rule("private-image", LAUNCH_PERMISSION)
def private_image(resource: Resource) -> Iterator[Violation]:
    """A machine image is for named accounts."""
    if resource.inputs.get("group") is not None:
        yield "group", "gives the image to everybody; name an account or an organisation"


@rule("sharing-stays-blocked", IMAGE_BLOCK, SNAPSHOT_BLOCK)
def sharing_stays_blocked(resource: Resource) -> Iterator[Violation]:
    """The account's own block of public images and snapshots is not lifted."""
    state = resource.inputs.get("state")
    if state not in BLOCKING[resource.type]:
        yield "state", f"must be {BLOCKING[resource.type][0]}, not {state}"
