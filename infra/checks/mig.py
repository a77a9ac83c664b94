"""Rules about GPUs that are cut into slices."""

from __future__ import annotations

from collections.abc import Iterator

from infra import catalog
from infra.catalog import mig
from infra.checks.rule import Violation, rule
from infra.plan.model import Plan
from infra.spec.cluster import Cluster


@rule("mig-layout-fits-the-gpu", Plan)
def mig_layout_fits_the_gpu(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """A slice begins where its profile allows and nowhere else (NVIDIA Multi-Instance GPU User Guide, profiles)."""
    for i, group in enumerate(plan.groups):
        if not group.mig:
            continue
        lack = "a node without a GPU has nothing to cut"
        refused = mig.refusal(catalog.load().gpu(group.gpu), group.mig) if group.gpu else lack
        if refused:
            yield f"cluster.nodes[{i}].mig", refused


@rule("mig-has-no-fabric", Plan)
def mig_has_no_fabric(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """Slices have no peer-to-peer, neither over NVLink nor over RDMA (NVIDIA Multi-Instance GPU User Guide)."""
    for i, group in enumerate(plan.groups):
        if group.mig and group.fabric != "tcp":
            yield f"cluster.nodes[{i}].fabric", "slices of a GPU do not use it, and it costs; say `fabric: none`"
