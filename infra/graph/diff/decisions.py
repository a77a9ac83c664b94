"""What differs between the decisions of two plans: few resources may hide many of them (own machines have none)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.graph.diff.values import Change, changes
from infra.plan.commands import BOOT

Document = Mapping[str, Any]

ORDER = "(order)"  # where the names of a list stand, beside its things
AS_COMMANDS = "power"  # a decision that the commands show whole
# Keys of a plan whose change may let somebody in, run something else, or spend otherwise: shown first, never shortened.
SECURITY = frozenset(
    {
        *("access", "admins", "api_from", "image", "key", "market", "permissions"),  # of groups and clusters
        *("address", "bmc", "host_key", "port", "prefix", "python", "devices"),  # of hosts
        *("internet", "public_address", "rules", "security_group", "security_groups"),  # of networks
        *("checksum", "client", "copies", "destroyable", "mount", "options", "storage_role_permissions"),  # of storage
        *("archive", "chart", "repository", "sha256"),  # of charts
        *("bundle", "limits", "isolation", "kubeconfig", "metadata_hop_limit", "tenant_permissions"),
    }
)


def decision_changes(before: Document, after: Document, *, with_boot: bool) -> list[dict[str, Any]]:
    """A row for each decision that differs, those of security first: path, before (absent: added), after (absent:
    removed), security. Commands are decisions too, each whole, by where and when it runs. Items with names are
    addressed by them: `groups.trainer.nodes.dgx-a1.address`; their order is a decision of its own.

    with_boot: whether both plans have resources, which alone know what nodes run when they boot.
    """
    old, new = (_named({**side.get("decisions", {}), AS_COMMANDS: None}) for side in (before, after))
    _forget_order(old, new)
    rows = [
        *({**row, "security": True} for row in _commands(before, after, with_boot=with_boot)),
        *({**leaf, "security": _of_security(leaf)} for change in changes(old, new) for leaf in _leaves(change)),
    ]
    return sorted(rows, key=lambda row: not row["security"])


def command_findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """A finding for each command that appears or is another one."""
    for row in rows:
        if row["path"].startswith("commands[") and "after" in row:
            message = f"was {row['before']}; is {row['after']}" if "before" in row else f"is new: {row['after']}"
            yield {"level": "warning", "rule": "command-changes", "path": row["path"], "message": message}


def _commands(before: Document, after: Document, *, with_boot: bool) -> Iterator[Change]:
    old, new = (_by_place(side.get("commands", []), with_boot=with_boot) for side in (before, after))
    for place in dict.fromkeys((*new, *old)):
        lost = [line for line in old.get(place, []) if line not in new.get(place, [])]
        come = [line for line in new.get(place, []) if line not in old.get(place, [])]
        for i in range(max(len(lost), len(come))):
            sides = {"before": lost[i : i + 1], "after": come[i : i + 1]}
            yield {"path": f"commands[{place}]", **{side: lines[0] for side, lines in sides.items() if lines}}


def _by_place(commands: Sequence[Mapping[str, Any]], *, with_boot: bool) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    for command in commands:
        if with_boot or not command["when"].startswith(BOOT):
            place = f"{command['where']} · {command['when']}"
            lines.setdefault(place, []).append(shlex.join(command["argv"]))
    return lines


def _named(value: Any) -> Any:
    """Lists of things with different names as mappings by name, with the order of the names beside them."""
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    names = [item.get("name") for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    if not names or len(names) < len(value) or not all(names) or len(set(names)) < len(names):
        return value
    return {ORDER: names, **{item["name"]: _named(item) for item in value}}


def _forget_order(old: Any, new: Any) -> None:
    """Takes away the order of things that stand as they stood, whatever came between them or left."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    here, there = old.get(ORDER, []), new.get(ORDER, [])
    if [name for name in here if name in there] == [name for name in there if name in here]:
        old.pop(ORDER, None)
        new.pop(ORDER, None)
    for key in old.keys() & new.keys() - {ORDER}:
        _forget_order(old[key], new[key])


def _leaves(change: Change) -> Iterator[Change]:
    """What was added or removed with all below it, key by key, without what is empty; items of lists stay whole."""
    sides = [side for side in ("before", "after") if side in change]
    value = change[sides[0]]
    if len(sides) == 2 or (not isinstance(value, dict | list) and value not in (None, "")):
        yield change
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != ORDER:
                yield from _leaves({"path": f"{change['path']}.{key}", sides[0]: item})
    elif isinstance(value, list):
        yield from ({"path": f"{change['path']}[{i}]", sides[0]: item} for i, item in enumerate(value))


def _of_security(change: Change) -> bool:
    words = [change["path"], *(word for side in ("before", "after") for word in _keys(change.get(side)))]
    return not SECURITY.isdisjoint(part for word in words for part in word.replace("[", ".").split("."))


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(item)
