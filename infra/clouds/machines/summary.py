"""The plan of own machines as text for people."""

from __future__ import annotations

from infra.clouds.machines.plan import MachineGroupPlan, MachinesPlan, RdmaPlan
from infra.plan.summary import Summary


class MachinesSummary(Summary[MachinesPlan, MachineGroupPlan]):
    """Says the fabric and the racks of a group, and whose login it is."""

    @property
    def location(self) -> str:
        return "own machines"

    def group(self, group: MachineGroupPlan) -> str:
        racks = dict.fromkeys(node.rack for node in group.nodes if node.rack)
        fabric = rdma(group.rdma) if group.rdma else "" if group.gpu is None else "TCP"
        return " · ".join(filter(None, [super().group(group), fabric, f"racks {', '.join(racks)}" if racks else ""]))

    @property
    def access(self) -> str:
        access = self.plan.access
        return f"{access.user} with {access.key_file}" + (
            f" from {', '.join(access.ssh_from)}" if access.ssh_from else ""
        )


def rdma(plan: RdmaPlan) -> str:
    """The fabric in one line."""
    partition = f" · partition {plan.partition_key} at index {plan.partition_index}" if plan.partition_key else ""
    return f"{plan.link_layer} {len(plan.hcas)} × {plan.gbits} Gbit/s{partition}"
