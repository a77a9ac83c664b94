"""The cloud's memory: one SQLite file that the provider, the HTTP front and the tests share."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = """
create table if not exists resource (
    n integer primary key, type text not null, id text not null, urn text not null, arn text not null,
    region text not null, maker text not null, state text not null,
    inputs text not null, outputs text not null, tags text not null, unique (type, id)
);
create index if not exists made on resource (maker);
create table if not exists call (
    n integer primary key, action text not null, type text not null, id text not null, fault text not null
);
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One resource. inputs: as last given; outputs: what the cloud adds to them, tags apart.

    urn: of the resource that the engine asked for, empty for what the cloud made by itself. maker: the id of the fleet,
    group or instance that made it, empty for the others. state: as EC2 names an instance's, empty for all else.
    """

    type: str
    id: str
    urn: str = ""
    arn: str = ""
    region: str = ""
    maker: str = ""
    state: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Any]:
        return {**self.inputs, **self.outputs}


JSON_COLUMNS = ("inputs", "outputs", "tags")
COLUMNS = tuple(Row.__dataclass_fields__)


class Store:
    """Rows and calls. Usable from several threads and processes; `change` makes a sequence of accesses one."""

    def __init__(self, file: Path) -> None:
        self.db = sqlite3.connect(file, check_same_thread=False, isolation_level=None, timeout=30)
        self.db.execute("pragma journal_mode=wal")
        self.db.execute("pragma synchronous=off")  # a process that is killed loses nothing; only a computer would
        self.db.executescript(SCHEMA)
        self.lock = threading.RLock()

    @contextmanager
    def change(self) -> Iterator[None]:
        """All or nothing, and nobody else writes meanwhile."""
        with self.lock:
            self.db.execute("begin immediate")
            try:
                yield
            except BaseException:
                self.db.execute("rollback")
                raise
            self.db.execute("commit")

    def rows(self, where: str = "1", *values: str) -> list[Row]:
        """In the order in which they were made."""
        with self.lock:
            query = f"select {', '.join(COLUMNS)} from resource where {where} order by n"
            found = self.db.execute(query, values).fetchall()
        rows = [dict(zip(COLUMNS, one, strict=True)) for one in found]
        return [Row(**{**row, **{name: json.loads(row[name]) for name in JSON_COLUMNS}}) for row in rows]

    def of(self, type_: str) -> list[Row]:
        return self.rows("type = ?", type_)

    def put(self, rows: Iterable[Row]) -> None:
        """Adds rows; one that is there already is replaced in its place."""
        marks = ", ".join("?" for _ in COLUMNS)
        renewed = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS)
        command = f"insert into resource ({', '.join(COLUMNS)}) values ({marks}) on conflict do update set {renewed}"
        with self.lock:
            self.db.executemany(command, [_stored(row) for row in rows])

    def remove(self, rows: Iterable[Row]) -> None:
        with self.lock:
            self.db.executemany("delete from resource where type = ? and id = ?", [(row.type, row.id) for row in rows])

    def called(self, action: str, type_: str, id_: str = "", fault: str = "") -> None:
        with self.lock:
            self.db.execute(
                "insert into call (action, type, id, fault) values (?, ?, ?, ?)", (action, type_, id_, fault)
            )

    def faults(self, fault: str, type_: str) -> int:
        """How often this fault has hit this type."""
        with self.lock:
            query = "select count(*) from call where fault = ? and type = ?"
            return self.db.execute(query, (fault, type_)).fetchone()[0]

    def calls(self) -> dict[tuple[str, str], int]:
        """How many calls there were, by action and type."""
        with self.lock:
            query = "select action, type, count(*) from call group by action, type"
            return {(action, type_): count for action, type_, count in self.db.execute(query)}


def _stored(row: Row) -> tuple[str, ...]:
    values = asdict(row)
    return tuple(json.dumps(values[name]) if name in JSON_COLUMNS else values[name] for name in COLUMNS)
