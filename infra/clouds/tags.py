"""Tags of every resource: its stack and its name, by which orphans of a killed deployment are recovered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi import ResourceTransformation

LOGICAL_NAME = "gpufleet:name"  # the stack's own tags come from the plan, through the provider's default tags
REMOVABLE = "gpufleet:removable"  # of what may go with all that it holds: the policy wants it said twice
ENTRANCE = "gpufleet:entrance"  # of the machines that have a public IP because people log in through them


def named(stack: str, more: Mapping[str, str] | None = None) -> ResourceTransformation:
    """Gives every resource that takes tags its logical name, and the name that the console shows.

    more: the stack's own tags, where a provider knows no default ones.
    """
    from pulumi import (
        ResourceTransformationArgs,
        ResourceTransformationResult,
    )  # who only reads the tags needs no engine

    def transformation(args: ResourceTransformationArgs) -> ResourceTransformationResult | None:
        own = args.props.get("tags", ())
        if not (own is None or isinstance(own, Mapping)):
            return None  # takes none, or, as a scaling group does, in a form of its own
        tags = {"Name": f"{stack}-{args.name}", LOGICAL_NAME: args.name, **(more or {}), **(own or {})}
        return ResourceTransformationResult({**args.props, "tags": tags}, args.opts)

    return transformation
