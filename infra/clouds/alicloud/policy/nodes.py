"""What a node of Alibaba Cloud must be: encrypted, without an address of the internet, with tokens before metadata.

Sources: ECS API, RunInstances (HttpTokens, InternetMaxBandwidthOut, SystemDisk.Encrypted); CIS Alibaba Cloud 2.0, 4.1
and 4.2; ECS API, CreateAutoProvisioningGroup (nodes are stopped and left behind unless told to end).
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.alicloud.policy.types import CONFIGURATION, INSTANCE, POOL, STARTED, TEMPLATE
from infra.clouds.tags import ENTRANCE
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import false, mapping, nested, number, true

MIX = "alicloud:ecs/autoProvisioningGroup:AutoProvisioningGroup"
DISK = "alicloud:ecs/ecsDisk:EcsDisk"
ADDRESS = "alicloud:ecs/eipAssociation:EipAssociation"
ASSURANCE = "alicloud:ecs/elasticityAssurance:ElasticityAssurance"
PASSWORDS = ("password", "kmsEncryptedPassword")


@rule("alicloud-no-public-address", *STARTED)
def no_public_address(resource: Resource) -> Iterator[Violation]:
    """No machine is born with an address of the internet; a fabric's would lose its eRDMA."""
    bandwidth = resource.inputs.get("internetMaxBandwidthOut")
    if bandwidth is not None and number(bandwidth) != 0:
        yield "internetMaxBandwidthOut", "must be 0: every machine started here would have a public IP"
    if not false(resource.inputs.get("allocatePublicIp")):
        yield "allocatePublicIp", "must be false"
    for key in ("ipv6AddressCount", "ipv6Addresses"):
        if resource.inputs.get(key) not in (None, 0, []):
            yield key, "an ERI takes no IPv6, and IPv6 addresses are of the internet"
    for path, interface in nested(resource.inputs, "networkInterfaces"):
        if interface.get("ipv6AddressCount") not in (None, 0):
            yield f"{path}.ipv6AddressCount", "an ERI takes no IPv6"


@stack_rule("alicloud-entrance")
def entrance(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """An elastic address is a NAT gateway's, or that of the machine by which people come in."""
    for address in stack.of(ADDRESS):
        kind = address.inputs.get("instanceType")
        machines = list(stack.made_of(address, "instanceId", INSTANCE))
        entrances = [true(mapping(each.inputs.get("tags")).get(ENTRANCE)) for each in machines]
        if kind != "Nat" and not (entrances and all(entrances)):
            yield address, "instanceId", f"gives a machine an address of the internet that is not tagged {ENTRANCE}"


@rule("alicloud-encrypted-disks", INSTANCE, CONFIGURATION, POOL)
def encrypted_disks(resource: Resource) -> Iterator[Violation]:
    """Every disk of a node is encrypted."""
    if not true(resource.inputs.get("systemDiskEncrypted")):
        yield "systemDiskEncrypted", "must be true: what the disk holds outlives the node in snapshots"
    yield from _data_disks(resource)


@rule("alicloud-encrypted-template-disks", TEMPLATE)
def encrypted_template_disks(resource: Resource) -> Iterator[Violation]:
    """Every disk of a template is encrypted."""
    if not true(mapping(resource.inputs.get("systemDisk")).get("encrypted")):
        yield "systemDisk.encrypted", "must be true: what the disk holds outlives the node in snapshots"
    yield from _data_disks(resource)


@rule("alicloud-encrypted-disk", DISK)
def encrypted_disk(resource: Resource) -> Iterator[Violation]:
    """A disk of its own is encrypted."""
    if not true(resource.inputs.get("encrypted")):
        yield "encrypted", "must be true"


@rule("alicloud-metadata-tokens", INSTANCE, TEMPLATE)
def metadata_tokens(resource: Resource) -> Iterator[Violation]:
    """Metadata is asked with a token: else whatever makes a node fetch an address reads its credentials.

    A scaling configuration cannot say so (pulumi-alicloud 4.0.0), which the plan warns of.
    """
    if resource.inputs.get("httpTokens") != "required":
        yield "httpTokens", "must be `required`"


@rule("alicloud-pool-metadata-tokens", POOL)
def pool_metadata_tokens(resource: Resource) -> Iterator[Violation]:
    """Metadata of a pool's nodes is asked with a token."""
    if mapping(resource.inputs.get("instanceMetadataOptions")).get("httpTokens") != "required":
        yield "instanceMetadataOptions.httpTokens", "must be `required`"


@rule("alicloud-no-password", *STARTED)
def no_password(resource: Resource) -> Iterator[Violation]:
    """People log in with keys; a password stands in the state, and is guessed."""
    for key in PASSWORDS:
        if resource.inputs.get(key) is not None:
            yield key, "must not be given: use a key pair"
    if not false(resource.inputs.get("passwordInherit")):
        yield "passwordInherit", "must be false: the image's own password is everybody's"


@rule("alicloud-mix-ends", MIX)
def mix_ends(resource: Resource) -> Iterator[Violation]:
    """What an auto provisioning group started ends with it, and when it is taken back."""
    inputs = resource.inputs
    if inputs.get("spotInstanceInterruptionBehavior") != "terminate":
        yield "spotInstanceInterruptionBehavior", "must be `terminate`: a stopped node's disk is billed for ever"
    if not true(inputs.get("terminateInstances")):
        yield "terminateInstances", "must be true: destroying the stack would leave the instances running and billed"
    if inputs.get("excessCapacityTerminationPolicy") != "termination":
        yield "excessCapacityTerminationPolicy", "must be `termination`: nodes above the target would stay"
    for path, config in nested(inputs, "launchTemplateConfigs"):
        if not config.get("maxPrice"):
            yield f"{path}.maxPrice", "must be set: spot would cost whatever it costs"


@rule("alicloud-spot-names-its-limit", INSTANCE, TEMPLATE)
def spot_names_its_limit(resource: Resource) -> Iterator[Violation]:
    """A limit that is asked for is named."""
    if resource.inputs.get("spotStrategy") == "SpotWithPriceLimit" and not resource.inputs.get("spotPriceLimit"):
        yield "spotPriceLimit", "must be set: SpotWithPriceLimit has no limit without it"


@rule("alicloud-assurance-is-protected", ASSURANCE)
def assurance_is_protected(resource: Resource) -> Iterator[Violation]:
    """An elasticity assurance was paid: deleting it only forgets that, and the next deployment buys another."""
    if not resource.protect:
        yield "", "must be protected: forgotten by the state, it would be bought a second time"


def _data_disks(resource: Resource) -> Iterator[Violation]:
    for path, disk in nested(resource.inputs, "dataDisks"):
        if not true(disk.get("encrypted")):
            yield f"{path}.encrypted", "must be true"
