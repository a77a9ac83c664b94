"""Rules about the software of GPUs: what the lock has no consistent answer for is refused before anything is bought."""

from __future__ import annotations

from collections.abc import Iterator

from infra import catalog
from infra.catalog import compatibility, drivers
from infra.plan.aws.capacity import Managed
from infra.plan.aws.plan import AwsPlan
from infra.plan.rules.registry import Violation, rule
from infra.spec.aws import AwsSpec

DISTRIBUTION = "ubuntu2404"  # of the image that nodes start from; EKS's images bring a driver of their own


@rule("gpu-has-locked-drivers", AwsPlan)
def gpu_has_locked_drivers(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A node runs one tuple of driver, CUDA and torch that is proven together (infra/catalog/compatibility.py)."""
    for i, group in enumerate(plan.groups):
        if group.gpu is None or isinstance(group.capacity, Managed):
            continue
        path, gpu = f"cluster.nodes[{i}].type", catalog.load().gpu(group.gpu)
        if catalog.load().type(group.type).cpu_arch != "x86_64":
            yield path, f"no driver is locked for {group.gpu} beside an arm64 processor; choose a type with x86_64"
            continue
        try:
            row = drivers.load().of(gpu, DISTRIBUTION)
        except drivers.NoTuple as lack:
            yield path, str(lack)
        else:
            found = compatibility.faults(row, gpu, DISTRIBUTION, drivers.load().fabric(group.fabric))
            yield from ((path, fault) for fault in found)
