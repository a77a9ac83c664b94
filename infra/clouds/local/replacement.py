"""Inputs of sites and nodes on this computer whose change replaces them."""

from __future__ import annotations

from collections.abc import Collection

from infra.clouds.local.provider import NODE_REPLACES, SITE_REPLACES

REPLACES: dict[str, Collection[str]] = {
    "pulumi-python:dynamic/gpufleet:Node": NODE_REPLACES,
    "pulumi-python:dynamic/gpufleet:Site": SITE_REPLACES,
}
