"""A finished plan as text for people: a headline, and a row for each concern.

A plan does not format itself. Each cloud may have a summary of its own (`infra.registry.Cloud.summary`), which says
what its plans alone have.
"""

from __future__ import annotations

import shlex
from typing import Any, Generic, TypeVar

from infra import registry
from infra.plan.cloud_model import CloudPlan
from infra.plan.commands import CommandPlan
from infra.plan.model import GroupPlan, Plan, StoragePlan

P = TypeVar("P", bound=Plan)
G = TypeVar("G", bound=GroupPlan)


class Summary(Generic[P, G]):
    """The text of a plan: of what every plan has."""

    def __init__(self, plan: P) -> None:
        self.plan = plan

    @property
    def location(self) -> str:
        """Where the cluster will be."""
        return " ".join(filter(None, [self.plan.cloud, self.plan.region]))

    @property
    def headline(self) -> str:
        """The cluster in one line, GPU nodes first."""
        groups: list[Any] = sorted(self.plan.groups, key=lambda group: group.gpu is None)
        return " · ".join([self.plan.stack, self.location, " + ".join(map(self.size, groups))])

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """What was decided, a concern a row."""
        groups: tuple[Any, ...] = self.plan.groups
        return (
            ("network", self.network),
            *self.below_the_network,
            *((group.name, self.group(group)) for group in groups),
            *(("storage", self.storage(storage)) for storage in self.plan.storage),
            *self.above_the_access,
            ("access", self.access),
        )

    @property
    def below_the_network(self) -> tuple[tuple[str, str], ...]:
        """Rows between the network and the groups."""
        return ()

    @property
    def above_the_access(self) -> tuple[tuple[str, str], ...]:
        """Rows between the storage and the access."""
        return ()

    @property
    def network(self) -> str:
        """The network in one line."""
        network = self.plan.network
        return network.cidr + (f" · this computer is {network.gateway}" if network.gateway else "")

    def size(self, group: G) -> str:
        """How many of what."""
        return f"{group.count} × {group.name}"

    def group(self, group: G) -> str:
        """A group in one line."""
        hardware = f"{group.gpus_per_node} × {group.gpu} each" if group.gpu else "no GPU"
        ends = dict.fromkeys(f"{node.address}:{node.port}" for node in (*group.nodes[:1], *group.nodes[-1:]))
        return " · ".join([hardware, " … ".join(ends) or "no address left"])

    def storage(self, storage: StoragePlan) -> str:
        """A storage in one line."""
        return f"{storage.kind} {storage.name} → {storage.mount}"

    @property
    def access(self) -> str:
        """Who may log in, in one line."""
        more = len(self.plan.access.public_keys)
        return "the stack's own key" + (f" and {more} more" if more else "")


C = TypeVar("C", bound=CloudPlan)


class CloudSummary(Summary[C, G]):
    """The text of a cluster in the zones of a cloud."""

    @property
    def location(self) -> str:
        return f"{self.plan.cloud} {', '.join(self.plan.zones)}"


def summary_of(plan: Plan) -> Summary[Any, Any]:
    """The summary of a plan, by its cloud."""
    summary: Summary[Any, Any] = registry.part(registry.cloud(plan.cloud).summary)(plan)
    return summary


def command_line(command: CommandPlan) -> str:
    """A command in one line; never shortened: what is left out would not be reviewed."""
    return f"{command.when}: {shlex.join(command.argv)}"
