"""Every text of a job file: what stands in its place is refused, a line a mistake, or is that text and no other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import reduce
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from payloads import payloads

from infra.printable import printable
from training.config.job import Job, JobError, load
from training.config.toml_source import alternatives

JOB = Path(__file__).resolve().parents[3] / "training" / "jobs" / "smoke.toml"


def texts(kind: Any, key: str = "", around: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The keys of the texts of a job, each with the settings that choose the kinds around it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        for option in alternatives(kind, inner[1:]) or inner[:1]:
            yield from texts(option, key, around)
    elif origin in (Union, UnionType):
        for each in inner:
            yield from texts(each, key, around)
    elif origin in (tuple, list):
        yield from texts(inner[0], key, around)
    elif kind in (str, Path):
        yield key, around
    elif is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        chosen = get_args(hints["kind"]) if "kind" in hints else ()
        own = (*around, *(f'{key}.kind="{each}"' for each in chosen))
        for field in fields(kind):
            yield from texts(hints[field.name], f"{key}.{field.name}".strip("."), own)
    else:
        assert origin is Literal or kind in (int, float, bool, type(None)), f"{key}: this walk does not know {kind}"


def outcome(*settings: str) -> Job | JobError:
    try:
        return load(str(JOB), list(settings))
    except JobError as error:
        return error


def test_no_text_of_a_job_is_read_as_another_one() -> None:
    keys, counts = list(texts(Job)), Counter[str]()
    assert {"name", "out", "data.path"} <= {key for key, _ in keys}
    for key, around in keys:
        for text in (each for each in payloads() if len(each) < 400):
            written = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # as TOML has it
            job = outcome(*around, f"{key}={written}")
            counts[type(job).__name__] += 1
            if isinstance(job, JobError):
                lines = str(job).splitlines()
                assert len(lines) == len(job.problems) > 0, (key, text, lines)
                assert all(printable(line).isprintable() for line in lines)
            else:
                value = reduce(getattr, key.split("."), job)
                assert str(value) == str(Path(text) if isinstance(value, Path) else text), (key, text)
    print(f"{len(keys)} texts of jobs: {counts['JobError']} refused, {counts['Job']} accepted as they are")
    assert counts.total() >= 500
