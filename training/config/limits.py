"""Number types with the limits that the values of a job file must keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from training.config.toml_source import Limit

Mistakes = Iterator[tuple[str, str]]

Count = Annotated[int, Limit(lambda n: n >= 1, "must be 1 or more")]
Whole = Annotated[int, Limit(lambda n: n >= 0, "must be 0 or more")]
Classes = Annotated[int, Limit(lambda n: n >= 2, "must be 2 or more")]
Side = Annotated[int, Limit(lambda n: n >= 8, "must be 8 pixels or more")]
Positive = Annotated[float, Limit(lambda x: x > 0, "must be greater than 0")]
Weight = Annotated[float, Limit(lambda x: x >= 0, "must be 0 or more")]
Fraction = Annotated[float, Limit(lambda x: 0 <= x < 1, "must be at least 0 and less than 1")]
