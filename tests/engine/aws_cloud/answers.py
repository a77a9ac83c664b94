"""What every answer to boto3 is made with: the cloud as a client sees it, filters, pages and tags.

A resource that is gone but still shown (a terminated machine, a deleted gateway, a key on its way out) is answered with
that state, and the tagging API names it too: as AWS does for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from cloud_provider.kinds import RefusedError
from cloud_provider.store import Row, Store

Asked = Mapping[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True)
class View:
    """The cloud as a client of one region sees it."""

    store: Store
    region: str

    def rows(self, type_: str) -> list[Row]:
        return self.store.rows("type = ? and region = ?", type_, self.region)


Answering = Callable[[View, Asked], Answer]


def selected(view: View, type_: str, asked: Asked, ids: str, fields: Mapping[str, Callable[[Row], str]]) -> list[Row]:
    """The rows of a type by ids and filters; values may hold `*`. Raises RefusedError for an unknown id or filter."""
    rows = view.rows(type_)
    if wanted := asked.get(ids):
        if missing := set(wanted) - {row.id for row in rows}:
            name = type_.rpartition(":")[2]
            raise RefusedError(f"Invalid{name}ID.NotFound", f"The ID '{', '.join(sorted(missing))}' does not exist")
        rows = [row for row in rows if row.id in wanted]
    for one in asked.get("Filters") or asked.get("Filter") or []:
        name, values = one["Name"], one["Values"]
        if name.startswith("tag:"):
            rows = [row for row in rows if _matches(row.tags.get(name[4:]), values)]
        elif name in fields:
            rows = [row for row in rows if _matches(fields[name](row), values)]
        else:
            raise RefusedError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return rows


def _matches(value: str | None, patterns: Sequence[str]) -> bool:
    return value is not None and any(fnmatchcase(value, pattern) for pattern in patterns)


def page(rows: Sequence[Row], token: str | None, size: int) -> tuple[Sequence[Row], str | None]:
    """A page, and the token of the next one: how many rows came before it."""
    start = int(token or 0)
    return rows[start : start + size], str(start + size) if start + size < len(rows) else None


def tags(row: Row) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(row.tags.items())]


def only(rows: list[Row], code: str, message: str) -> Row:
    """The row of a look-up. Raises RefusedError when there is none."""
    if not rows:
        raise RefusedError(code, message)
    return rows[0]
