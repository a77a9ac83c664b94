"""For each rule of ACK a cluster that it passes and one that it objects to, in the form of `ali_rule_cases`."""

from __future__ import annotations

from ali_clusters import KEY, SYSTEM, group
from ali_rule_cases import A10, DATA, Changes

ACK = {"ack": "{version: '1.35'}", "access": f'{{public_key: "{KEY}"}}'}
TENANT = (
    f"{{name: research, image: 'a/b@sha256:{'0' * 64}', "
    "volumes: [{name: work, kind: volume, mount: /work, size_gib: 100, storage_class: shared}]}"
)

CASES: dict[str, tuple[Changes, Changes, str, str, str]] = {
    "ack-nodes-have-a-key": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "access": None, "nodes": group(SYSTEM, **A10)},
        "error",
        "access.public_key",
        "ACK makes no node without a key pair",
    ),
    "ack-services-are-outside-the-network": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "nodes": group(SYSTEM, **A10), "network": "{cidr: 172.21.0.0/16}"},
        "error",
        "network.cidr",
        "where services stand",
    ),
    "ack-version-lives": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "ack": "{version: '1.34'}", "nodes": group(SYSTEM, **A10)},
        "error",
        "ack.version",
        "is none that ACK supports: 1.35, 1.36",
    ),
    "ack-has-nodes-for-itself": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "nodes": group("", **A10)},
        "error",
        "nodes",
        "needs a group without GPUs",
    ),
    "ack-knows-the-erdma-type": (
        {**ACK, "nodes": group(SYSTEM, type="ecs.ebmgn8is.32xlarge", queue_pairs=None)},
        {**ACK, "nodes": group(SYSTEM, queue_pairs=None)},
        "warning",
        "nodes[1].type",
        "is documented for",
    ),
    "ack-tenant-has-gpus": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "ack": f"{{version: '1.35', tenant: {TENANT}}}", "nodes": f"[{SYSTEM}]"},
        "error",
        "ack.tenant",
        "has no GPUs to share",
    ),
    "ack-storage-is-for-pods": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "nodes": group(SYSTEM, **A10), "storage": DATA},
        "info",
        "storage[0].mount",
        "no node mounts /data",
    ),
    "ack-tenant-is-made-inside-the-network": (
        {**ACK, "nodes": group(SYSTEM, **A10)},
        {**ACK, "ack": f"{{version: '1.35', tenant: {TENANT}}}", "nodes": group(SYSTEM, **A10)},
        "info",
        "ack.tenant",
        "`up` must run inside the VPC",
    ),
}
