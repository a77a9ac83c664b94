"""What the plan of a stack does to an earlier plan of it, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.graph.diff.decisions import command_findings, decision_changes
from infra.graph.diff.replacement import carried_along, replaces
from infra.graph.diff.values import changes
from infra.plan.model import HOURS_PER_MONTH

Document = Mapping[str, Any]
Row = Mapping[str, Any]

ABOUT = ("urn", "type", "name")


def difference(before: Document, after: Document) -> dict[str, Any]:
    """Both are documents of `gpufleet plan --json` of one stack.

    resources: those that do not stay as they are, with `action` (add, change, replace, remove), `concern` (the part of
    the cluster that declares it) and `changes`, a row for each input that differs: path, before, after, replaces. None
    are compared where one side was refused, and so declares nothing; of a stack that was not there yet all is added.
    unchanged: how many stay. decisions: the rows of `decision_changes`, not compared with an earlier plan of a version
    that has none (`decisions_compared`): then every command is new. A command that is new or another one is a finding.
    """
    compared = all(side["resources"] or not side["findings"] for side in (before, after))
    rows = list(_resources(before["resources"], after["resources"])) if compared else []
    decided = "decisions" in before
    decisions = decision_changes(
        before if decided else {}, after if decided else {"commands": after.get("commands", [])}, with_boot=compared
    )
    unchanged = sum(row["custom"] for row in after["resources"]) - sum(row["action"] != "remove" for row in rows)
    return {
        "compared": compared,
        "resources": sorted(rows, key=lambda row: (row["concern"], row["type"], row["name"])),
        "unchanged": unchanged if compared else 0,
        "decisions_compared": decided,
        "decisions": decisions,
        "cost": _cost(before["cost"], after["cost"]),
        "findings": {
            "new": [
                *command_findings(decisions),
                *(finding for finding in after["findings"] if finding not in before["findings"]),
            ],
            "gone": [finding for finding in before["findings"] if finding not in after["findings"]],
        },
    }


def _resources(before: list[Row], after: list[Row]) -> Iterator[dict[str, Any]]:
    """Components are left out: they are what declares, not what is declared."""
    old, new = ({row["urn"]: row for row in side} for side in (before, after))
    changes_of = {urn: list(_changes(old[urn], new[urn])) for urn in new.keys() & old.keys() if new[urn]["custom"]}
    carried = carried_along(after, {urn for urn, rows in changes_of.items() if any(row["replaces"] for row in rows)})
    for urn, row in new.items():
        if not row["custom"]:
            continue
        if urn not in old:
            yield _entry("add", row, new, list(changes({}, row["inputs"])))
            continue
        also = [{"path": key, "replaces": True} for key in carried.get(urn, ())]
        if changed := [*changes_of[urn], *also]:
            yield _entry("replace" if any(each["replaces"] for each in changed) else "change", row, new, changed)
    for urn, row in old.items():
        if row["custom"] and urn not in new:
            yield _entry("remove", row, old, [])


def _changes(old: Row, new: Row) -> Iterator[dict[str, Any]]:
    """Of the inputs; of protection and provider too, whose names no input has."""
    for change in changes(old["inputs"], new["inputs"]):
        yield {**change, "replaces": replaces(new, change["path"])}
    for key in ("protect", "provider"):
        if old[key] != new[key]:
            yield {"path": f"({key})", "before": old[key], "after": new[key], "replaces": key == "provider"}


def _entry(action: str, row: Row, rows: Mapping[str, Row], changed: list[dict[str, Any]]) -> dict[str, Any]:
    return {"action": action, "concern": _concern(row, rows), **{key: row[key] for key in ABOUT}, "changes": changed}


def _concern(row: Row, rows: Mapping[str, Row]) -> str:
    """The component below the cluster's own that the resource belongs to."""
    names: list[str] = []
    at: Row | None = row
    while at is not None:
        if not at["custom"]:
            names.append(at["name"])
        at = rows.get(at["parent"])
    return names[-3] if len(names) > 2 else "cluster"  # the last two are the stack and the cluster


def _cost(before: Document, after: Document) -> dict[str, Any]:
    sides = {"before": before, "after": after}
    hourly, most = ({side: cost[key] for side, cost in sides.items()} for key in ("hourly", "hourly_max"))
    prices = {side: {item["name"]: item["hourly"] for item in cost["items"]} for side, cost in sides.items()}
    names = dict.fromkeys((*prices["after"], *prices["before"]))
    items = [{"name": name, **{side: priced.get(name) for side, priced in prices.items()}} for name in names]
    return {
        "currency": after["currency"],
        "hourly": hourly,
        "hourly_max": most,
        "monthly": {side: price * HOURS_PER_MONTH for side, price in hourly.items()},
        "items": [item for item in items if item["before"] != item["after"]],
    }
