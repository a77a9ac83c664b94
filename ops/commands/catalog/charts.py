"""`gpufleet catalog charts`: verifies the Helm charts of the lock, and completes their digests."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.clouds import base
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, show


def command(
    write_table: Annotated[bool, typer.Option("--write", help="write new digests into the table")] = False,
    as_json: Json = False,
) -> None:
    """Download every Helm chart of the table, verify its repository's digest, and list the missing digests."""
    _, lock = base.contributed("charts.lock")
    show(lock.charts(Phases(Screen(), quiet=as_json), write=write_table), as_json, lock.text)
