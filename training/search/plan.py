"""The search file: TOML with `job`, `trials`, `out` and the `space` of what is varied."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.config.data import Fold
from training.config.errors import JobError
from training.config.job import Job, load
from training.config.limits import Count, Mistakes
from training.config.toml_source import Source, fill
from training.config.toml_source import read as read_toml


@dataclass(frozen=True, kw_only=True)
class Range:
    """Numbers from low to high, whole ones where both are. log: as likely in every power of ten."""

    low: float
    high: float
    log: bool = False

    def rules(self) -> Mistakes:
        if self.low >= self.high:
            yield "high", f"must be more than low = {self.low:g}"
        if self.log and self.low <= 0:
            yield "low", f"must be greater than 0 with log = true, is {self.low:g}"


@dataclass(frozen=True, kw_only=True)
class Head:
    """The search file but for its space.

    fold: of the training set, what trials are judged by. eval_every: steps between two evaluations, where a trial may
    be pruned.
    """

    job: str
    out: Path
    trials: Count = 20
    fold: Fold = 0
    eval_every: Count = 50


@dataclass(frozen=True, kw_only=True)
class Plan(Head):
    """A search, checked. space: by dotted key of the job, a range, or a list to choose from."""

    space: dict[str, Range | list[Any]]

    @property
    def study(self) -> Path:
        return self.out / "study.db"

    def job_of(self, number: int, values: dict[str, Any]) -> Job:
        """The job of a trial: judged on a fold, and often enough to be pruned."""
        own = {"out": self.out / f"trial-{number:04d}", "data.fold": self.fold, "eval.every_steps": self.eval_every}
        settings = own | {"tensorboard": False} | values
        return load(self.job, assignments(settings))


def assignments(values: dict[str, Any]) -> list[str]:
    """`key=value` as the command line takes it: a truth value as TOML writes it."""
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items()]


def read(path: str | Path) -> Plan:
    """The search of a file; raises JobError with every mistake in it, those of the job it names included."""
    source = read_toml(Path(path))
    space = source.tables.pop("space", None)
    if not isinstance(space, dict) or not space:
        source.complain(
            "space", "is missing; vary at least one key: optimizer.lr = {low = 1e-4, high = 0.1, log = true}"
        )
        space = {}
    named = {**source.tables}
    named.setdefault("out", f"runs/{Path(path).stem}")
    checked = {key: dimension(key, value, source) for key, value in flat(space).items()}
    plan = fill(Head, named, source)
    if source.problems or plan is None:
        raise JobError(*source.problems)
    search = Plan(**vars(plan), space={key: value for key, value in checked.items() if value is not None})
    search.job_of(0, {key: first(value) for key, value in search.space.items()})  # the job and its keys exist
    return search


def flat(space: dict[str, Any], key: str = "") -> dict[str, Any]:
    """Tables of tables as dotted keys; a table with `low` or `high` is a range."""
    keys: dict[str, Any] = {}
    for name, value in space.items():
        inner = f"{key}.{name}".lstrip(".")
        if isinstance(value, dict) and not value.keys() & {"low", "high"}:
            keys |= flat(value, inner)
        else:
            keys[inner] = value
    return keys


def dimension(key: str, value: Any, source: Source) -> Range | list[Any] | None:
    """A range, or what to choose from."""
    if isinstance(value, list) and len(value) > 1:
        return value
    if isinstance(value, dict):
        bounds = fill(Range, value, source, f"space.{key}")
        whole = all(type(value.get(end)) is int for end in ("low", "high"))
        return Range(low=int(bounds.low), high=int(bounds.high), log=bounds.log) if bounds and whole else bounds
    source.complain(f"space.{key}", "must be a list of two or more, or a table with low and high")
    return None


def first(value: Range | list[Any]) -> Any:
    return value.low if isinstance(value, Range) else value[0]
