"""The clouds, one row each: the only list of them. Whatever is about one cloud alone is in its folder.

A cloud's package holds `CLOUD`, which names its parts; a part loads when it is used, because a provider's SDK costs up
to a second and tens of megabytes, and most commands need only one cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

CLOUDS = {
    "local": "infra.clouds.local",
    "aws": "infra.clouds.aws",
    "alicloud": "infra.clouds.alicloud",
    "machines": "infra.clouds.machines",
    "kubernetes": "infra.clouds.kubernetes",
}


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """Where the parts of a cloud are, as `module:name` or `module`.

    spec: its stack file, a subclass of infra.spec.cluster.Cluster.
    plan: (stack, spec) -> a subclass of infra.plan.model.Plan.
    resources: (plan, root) -> the handover as an Output of plain JSON.
    checks: modules of rules on its plans, in the order of their findings.
    policy: modules of rules on its rendered resources.
    policy_tables: what the rules for every cloud are about there, an infra.policy.tables.Tables; empty for nothing.
    summary: of a plan -> a subclass of infra.plan.summary.Summary.
    invokes: what a rendered plan says in place of answers of the cloud: by a Pulumi function's token, (args) -> result.
    filled: objects that the cloud fills in and the program reads: by type and property, the texts in them.
    replacement: inputs whose change replaces a resource, by its type.
    picture: (plan) -> infra.graph.picture.scene.Scene; empty for what every plan says.
    """

    spec: str
    plan: str
    resources: str
    checks: tuple[str, ...]
    policy: tuple[str, ...] = ()
    policy_tables: str = ""
    summary: str = "infra.plan.summary:Summary"
    invokes: str = ""
    filled: str = ""
    replacement: str = ""
    picture: str = ""


def cloud(name: str) -> Cloud:
    """The parts of a cloud. Raises KeyError for a name that is no row."""
    parts: Cloud = import_module(CLOUDS[name]).CLOUD
    return parts


def part(reference: str) -> Any:
    """What a reference of the form `module:name` names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
