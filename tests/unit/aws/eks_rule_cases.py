"""For each rule of EKS a cluster that it passes and one that it objects to, in the form of `rule_cases`."""

from __future__ import annotations

from clusters import BUCKET, group
from rule_cases import Changes

ADMINS = "admins: ['arn:aws:iam::111122223333:role/ops']"
SYSTEM = "{name: system, type: m6i.large, count: 2}"
TENANT = (
    f"tenant: {{name: research, image: 'a/b@sha256:{'0' * 64}', "
    "volumes: [{name: work, kind: volume, mount: /work, size_gib: 100, storage_class: shared}]}"
)
OFFICES = ", ".join(f"8.8.{i}.0/24" for i in range(41))


def eks(more: str = "", version: str = '"1.35"', **changes: object) -> Changes:
    """A cluster of EKS that no rule objects to: a system group and `group(**changes)`, with more keys of `eks`."""
    return {
        "zone": None,
        "zones": "[us-east-1d, us-east-1a]",
        "nodes": f"[{SYSTEM}, {group(**{'zone': 'us-east-1d', **changes})[1:]}",
        "eks": f"{{version: {version}, {ADMINS}{more and ', ' + more}}}",
    }


CASES: dict[str, tuple[Changes, Changes, str, str, str]] = {
    "eks-version-is-supported": (
        eks(version='"1.34"'),
        eks(version='"1.33"'),
        "error",
        "eks.version",
        "1.33 is none of those that are supported: 1.34, 1.35",
    ),
    "eks-spans-two-zones": (
        eks(),
        {**eks(), "zones": "[us-east-1d]"},
        "error",
        "zones",
        "a control plane stands in two zones",
    ),
    "eks-api-is-not-open-to-the-world": (
        eks("api_from: [8.8.8.0/24]"),
        eks("api_from: [0.0.0.0/1, 128.0.0.0/1]"),
        "error",
        "eks.api_from",
        "would be open to 0.0.0.0/0",
    ),
    "eks-api-networks-are-public": (
        eks("api_from: [8.8.8.0/24]"),
        eks("api_from: [203.0.113.0/24]"),
        "error",
        "eks.api_from[0]",
        "203.0.113.0/24 is reserved",
    ),
    "eks-api-networks-are-few": (
        eks(f"api_from: [{OFFICES.rpartition(', ')[0]}]"),
        eks(f"api_from: [{OFFICES}]"),
        "error",
        "eks.api_from",
        "41 networks; EKS takes 40",
    ),
    "eks-system-pods-have-a-node": (
        eks(),
        {**eks(), "nodes": group(zone="us-east-1d")},
        "error",
        "nodes",
        "DNS has no node to run on",
    ),
    "managed-spot-has-no-options": (
        eks(market="{kind: spot}"),
        eks(market="{kind: spot, max_price: 14}"),
        "error",
        "nodes[1].market.max_price",
        "EKS buys spot at up to the on-demand price",
    ),
    "managed-group-is-within-its-quota": (
        eks(count=450),
        eks(count=451),
        "warning",
        "nodes[1].count",
        "451 is more than a managed node group has",
    ),
    "device-plugins-are-installed-apart": (
        {**eks(), "nodes": f"[{SYSTEM}]"},
        eks(type="p6-b200.48xlarge"),
        "info",
        "eks",
        "aws-efa-k8s-device-plugin 0.5.30 (at least 0.5.10)",
    ),
    "eks-tenant-has-gpus": (
        eks(f"api_from: [8.8.8.0/24], {TENANT}"),
        {**eks(f"api_from: [8.8.8.0/24], {TENANT}"), "nodes": f"[{SYSTEM}]"},
        "error",
        "eks.tenant",
        "has no GPUs to share",
    ),
    "eks-storage-is-for-pods": (
        eks(),
        {**eks(), "storage": f"[{BUCKET}]"},
        "info",
        "storage[0].mount",
        "no node mounts /d",
    ),
    "tenant-is-made-through-the-api": (
        eks(f"api_from: [8.8.8.0/24], {TENANT}"),
        eks(TENANT),
        "info",
        "eks.tenant",
        "`up` must run inside the VPC",
    ),
}
