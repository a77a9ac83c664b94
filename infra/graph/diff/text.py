"""A difference as text for a review: marks stand in the first column, where a `diff` block of Markdown colours them.

`+` added, `-` removed, `~` changed where it stands, `!` replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from infra.printable import escaped

MARKS = {"add": "+", "change": "~", "replace": "!", "remove": "-"}
WORDS = {"add": "added", "change": "changed", "replace": "replaced", "remove": "removed"}
SECURITY = "security: who gets in, what runs, what is bought"  # comes first
SHOWN = 12  # changes of one resource that a person reads; --json has them all
LONGEST, CONTEXT = 48, 12  # characters of a value, and those before and after what differs in a longer one


def text(document: Mapping[str, Any]) -> str:
    """document: of a plan that was held `against` another (`difference`)."""
    difference = document["difference"]
    actions = [row["action"] for row in difference["resources"]]
    counts = [f"{actions.count(action)} {word}" for action, word in WORDS.items() if action in actions]
    decisions = difference["decisions"]
    if not difference["compared"]:
        head = "resources are not compared, since one of the two plans is refused and declares none"
    else:
        same = ["no resource differs"] if difference["decisions_compared"] and not decisions else []
        head = ", ".join([*(counts or same), f"{difference['unchanged']} unchanged"])
    if decisions:
        number = sum(row["security"] for row in decisions)
        head += f" · {len(decisions)} decision{'s' if len(decisions) > 1 else ''} changed, {number} of security"
    lines = [f"{document['stack']} against {document['against']}: {head}"]
    if not difference["decisions_compared"]:
        lines += ["", "  decisions are not compared, since the earlier plan's version has none; every command is shown"]
    lines += _decisions(decisions)
    for concern, rows in groupby(difference["resources"], key=lambda row: row["concern"]):
        lines += ["", f"  {concern}", *(line for row in rows for line in _resource(row))]
    lines += ["", *_prices(difference["cost"]), *_findings(difference["findings"])]
    return "\n".join(map(escaped, lines))


def _decisions(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Those of security whole, before all else; of the others as many as a person reads."""
    security, others = ([row for row in rows if row["security"] is marked] for marked in (True, False))
    if security:
        yield from ("", f"  {SECURITY}", *(_decision(row, whole) for row in security))
    if others:
        yield from ("", "  decisions", *(_decision(row, shown) for row in others[:SHOWN]))
        if (more := len(others) - SHOWN) > 0:
            yield f"        … {more} more with --json"


def _decision(row: Mapping[str, Any], value: Callable[[Any], str]) -> str:
    mark = MARKS["remove" if "after" not in row else "add" if "before" not in row else "change"]
    sides = (value(row[side]) for side in ("before", "after") if side in row)
    return f"{mark}   {row['path']}: {' → '.join(sides)}"


def _resource(row: Mapping[str, Any]) -> Iterator[str]:
    kind = row["type"].rpartition(":")[2]
    carried = [change["path"] for change in row["changes"] if "before" not in change and "after" not in change]
    why = f"  with its {', '.join(carried)}" if carried else ""
    yield f"{MARKS[row['action']]}   {kind} {row['name']}{why}"
    if row["action"] == "add":
        yield from (f"        {line}" for line in _brief(row["changes"]))
        return
    changes = [change for change in row["changes"] if change["path"] not in carried]
    for change in changes[:SHOWN]:
        yield f"        {_change(change)}{' (replaces)' if change['replaces'] else ''}"
    if (more := len(changes) - SHOWN) > 0:
        yield f"        … {more} more with --json"


def _brief(inputs: list[Mapping[str, Any]]) -> Iterator[str]:
    """The plain inputs of a new resource in one line: enough to know it by."""
    plain = [f"{each['path']} {shown(each['after'])}" for each in inputs if not isinstance(each["after"], dict | list)]
    if plain:
        yield ", ".join(plain[:4]) + (" …" if len(plain) > 4 else "")


def _change(change: Mapping[str, Any]) -> str:
    if "before" not in change:
        return f"{change['path']}: + {shown(change['after'])}"
    if "after" not in change:
        return f"{change['path']}: - {shown(change['before'])}"
    return f"{change['path']}: {pair(change['before'], change['after'])}"


def pair(before: Any, after: Any) -> str:
    """Two values side by side; long ones without what they begin and end with alike."""
    old, new = _plain(before), _plain(after)
    if max(len(old), len(new)) > LONGEST:
        head = _alike(old, new)
        tail = _alike(old[head:][::-1], new[head:][::-1])
        old, new = (_middle(side, max(0, head - CONTEXT), max(0, tail - CONTEXT)) for side in (old, new))
    return f"{_cut(old)} → {_cut(new)}"


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def whole(value: Any) -> str:
    """A value in one line, however long."""
    return _plain(value)


def shown(value: Any) -> str:
    """A value in one line of bounded length."""
    return _cut(_plain(value))


def _plain(value: Any) -> str:
    """Without quotation marks around a text; what would break the line or steer a terminal is escaped."""
    written = escaped(json.dumps(value, ensure_ascii=False))
    return written[1:-1].replace('\\"', '"') if isinstance(value, str) else written


def _middle(side: str, start: int, end: int) -> str:
    return ("…" if start else "") + side[start : len(side) - end] + ("…" if end else "")


def _cut(written: str) -> str:
    return written if len(written) <= LONGEST else f"{written[: LONGEST - 1]}…"


def _prices(cost: Mapping[str, Any]) -> Iterator[str]:
    for name, key, unit, digits in (
        ("price", "hourly", "/h", 2),
        ("at most", "hourly_max", "/h", 2),
        ("month", "monthly", "", 0),
    ):
        before, after = cost[key]["before"], cost[key]["after"]
        if not (before or after) or (key == "hourly_max" and cost[key] == cost["hourly"]):
            continue
        money = f"{before:,.{digits}f} → {after:,.{digits}f} {cost['currency']}{unit}"
        share = f", {100 * (after - before) / before:+.1f} %" if before else ""
        same = f"{after:,.{digits}f} {cost['currency']}{unit}, as before"
        yield f"  {name:<8} " + (f"{money} ({after - before:+,.{digits}f}{share})" if before != after else same)
    for item in cost["items"]:
        old, new = ("no price" if item[side] is None else f"{item[side]:,.2f}" for side in ("before", "after"))
        yield f"           {item['name']} {old} → {new}"


def _findings(findings: Mapping[str, list[dict[str, str]]]) -> Iterator[str]:
    for mark, key in (("+", "new"), ("-", "gone")):
        for finding in findings[key]:
            yield "{mark} {level:<8} {path}: {message} [{rule}]".format(mark=mark, **finding)
