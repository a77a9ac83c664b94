"""The values that the provider itself takes, where it takes no others: `values.csv`.

Source: the checks of aliyun/terraform-provider-alicloud at commit 81c43b67 (2026-08-21), asked one by one, through
`schema.Resource.Validate`, with a value that none can be; what each says that it expects stands in the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".csv")


def problems(type_: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    """A line for each argument whose value the provider would refuse."""
    for argument, taken in _table().get(type_, {}).items():
        value: Any = inputs
        for key in argument.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None and not _fits(str(value), taken):
            yield f"{argument}: must be {taken}, not {value!r}"


def _fits(value: str, taken: str) -> bool:
    least, is_range, most = taken.partition("..")
    return int(least) <= float(value) <= int(most) if is_range else value in taken.split()


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    with FILE.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["type"], {})[row["argument"]] = row["taken"]
    return found
