"""The nodes that gpu_node.yml is for: one of each kind, as its cloud or its owner has it."""

from __future__ import annotations

from gpu_machines import Hardware

from infra.handover import Disks
from infra.plan.volumes import scratch

SCRATCH = scratch(disks=2, disk_gb=1000)
SCENARIOS = {
    "v100": Hardware(model="v100", gpu="V100-SXM2-32GB", count=8, distribution="ubuntu2404"),
    "t4": Hardware(model="t4", gpu="T4", count=1, distribution="debian12"),
    "a10": Hardware(model="a10", gpu="A10", count=1, distribution="ubuntu2404"),
    "a100-efa": Hardware(
        model="a100",
        gpu="A100-SXM4-80GB",
        count=8,
        distribution="ubuntu2404",
        fabric="efa",
        cards=tuple(f"rdmap{i}s0" for i in range(4)),
    ),
    "h100-efa": Hardware(
        model="h100",
        gpu="H100-SXM5-80GB",
        count=8,
        distribution="debian12",
        fabric="efa",
        cards=tuple(f"rdmap{i}s0" for i in range(32)),
    ),
    "b200-efa": Hardware(
        model="b200",
        gpu="B200",
        count=8,
        distribution="ubuntu2404",
        fabric="efa",
        cards=tuple(f"rdmap{i}s0" for i in range(8)),
    ),
    "b300-efa": Hardware(
        model="b300",
        gpu="B300",
        count=8,
        distribution="debian12",
        fabric="efa",
        cards=tuple(f"rdmap{i}s0" for i in range(16)),
    ),
    "ebmgn7ex-erdma": Hardware(
        model="a100",
        gpu="A100-SXM4-80GB",
        count=8,
        distribution="ubuntu2404",
        fabric="erdma",
        cards=("erdma_0", "erdma_1"),
    ),
    "own-infiniband": Hardware(
        model="h100",
        gpu="H100-SXM5-80GB",
        count=8,
        distribution="debian12",
        fabric="infiniband",
        cards=tuple(f"mlx5_{i}" for i in range(8)),
    ),
    "mig": Hardware(
        model="a100",
        gpu="A100-SXM4-80GB",
        count=2,
        distribution="debian12",
        mig=("4g.40gb", "2g.20gb", "1g.10gb"),
    ),
    "cpu-head": Hardware(
        model="t4",
        gpu="T4",
        count=0,
        distribution="ubuntu2404",
        devices={"/dev/nvme1n1": "", "/dev/nvme2n1": ""},
        disks=tuple(Disks.of(each) for each in [SCRATCH] if each),
    ),
}
