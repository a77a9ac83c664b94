"""Rules about the software of GPUs: what the lock has no consistent answer for is refused before anything is bought."""

from __future__ import annotations

from collections.abc import Iterator

from infra import catalog
from infra.catalog import compatibility, drivers
from infra.checks.rule import Violation, rule
from infra.plan.cloud_model import CloudPlan
from infra.spec.cloud import Zoned

DISTRIBUTION = "ubuntu2404"  # of the image that nodes start from; those of EKS and ACK bring a driver of their own
TORCH_CUDA = 13  # of the locked build


@rule("gpu-has-locked-drivers", CloudPlan)
def gpu_has_locked_drivers(_: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """A node runs one tuple of driver, CUDA and torch that is proven together (infra/catalog/compatibility.py).

    A part of a GPU is a virtual one (awslabs/amazon-eks-ami: its boot loads GRID's module for such types)."""
    for i, group in enumerate(plan.groups):
        if group.gpu is None or group.image_has_driver:
            continue
        path, gpu = f"cluster.nodes[{i}].type", catalog.load().gpu(group.gpu)
        kind = catalog.load().type(group.type)
        if kind.gpu_share < 1:
            part = f"{kind.gpu_share:g} of a GPU needs NVIDIA's driver for virtual GPUs, of which none is locked"
            yield path, f"{part}; choose a type with whole ones"
            continue
        if kind.cpu_arch != "x86_64":
            yield path, f"{beside_arm64(group.gpu)}; choose a type with x86_64"
            continue
        try:
            row = drivers.load().of(gpu, DISTRIBUTION)
        except drivers.NoTupleError as lack:
            yield path, str(lack)
        else:
            problems = compatibility.faults(row, gpu, DISTRIBUTION, drivers.load().fabric(group.fabric))
            yield from ((path, fault) for fault in problems)


@rule("gpu-runs-the-locked-torch", CloudPlan)
def gpu_runs_the_locked_torch(_: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """CUDA 13 has no code for Volta, nor a driver after R580 (NVIDIA CUDA release notes; pytorch#157517)."""
    for i, group in enumerate(plan.groups):
        if group.gpu and (message := too_old(group.gpu)):
            yield f"cluster.nodes[{i}].type", message


def beside_arm64(gpu: str) -> str:
    """Why a machine with a GPU and such a processor gets no driver."""
    return f"no driver is locked for {gpu} beside an arm64 processor"


def too_old(gpu: str) -> str | None:
    """Why the locked torch does not run on a GPU; None where it does."""
    last = catalog.load().gpu(gpu).cuda_last
    if last is None or int(last.partition(".")[0]) >= TORCH_CUDA:
        return None
    return f"{gpu} ends at CUDA {last}, and jobs run on CUDA {TORCH_CUDA}; choose a newer GPU"
