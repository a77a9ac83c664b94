"""The entry of one version of a chart in the index of its repository.

The index is untrusted and of any size: it is read event by event, aliases and tags are refused, and only the requested
chart is held in memory. Source: Helm, "The Chart Repository Guide" (`entries`, `urls`, `digest`: the sha256 of the
archive).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import yaml

from infra.printable import escaped

DEEPEST = 32
DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BEGINS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class ChartIndexError(Exception):
    """Why an index is unusable, in one line."""


@dataclass(frozen=True)
class Entry:
    """url: of the archive, whole. sha256: that the archive must have."""

    url: str
    sha256: str


def entry(text: bytes, repository: str, chart: str, version: str) -> Entry:
    """Raises ChartIndexError, also where the index contradicts itself."""
    try:
        listed = _entries(text.decode("utf-8"), chart)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}" if place else ""
        raise ChartIndexError(f"the index cannot be read{where}") from None
    matching = [row for row in listed if isinstance(row, dict) and row.get("version") == version]
    if len(matching) != 1:
        raise ChartIndexError(f"the index has {len(matching) or 'no'} entries of {chart} {version}")
    urls, digest = matching[0].get("urls"), DIGEST.fullmatch(str(matching[0].get("digest", "")))
    if digest is None:
        raise ChartIndexError(f"the index states no sha256 of {chart} {version}")
    if not isinstance(urls, list) or not urls or not isinstance(urls[0], str):
        raise ChartIndexError(f"the index names no archive of {chart} {version}")
    return Entry(urljoin(f"{repository.rstrip('/')}/", urls[0]), digest[1])


def _entries(text: str, chart: str) -> list[Any]:
    """What stands under `entries` and the chart's name."""
    events = _sound(yaml.parse(text, Loader=Loader))
    lists: list[list[Any]] = []
    for key, event in _pairs(events, _document(events)):
        if key != "entries":
            _skip(events, event)
            continue
        for name, listed in _pairs(events, event):
            if name == chart:
                value = _value(events, listed, 0)
                if not isinstance(value, list):
                    raise ChartIndexError(f"the index has no list of {chart}")
                lists.append(value)
            else:
                _skip(events, listed)
    if len(lists) > 1:
        raise ChartIndexError(f"the index has {chart} twice")
    return lists[0] if lists else []


def _sound(events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ChartIndexError("the index has aliases, which no index needs")
        if tag is not None and not tag.startswith("tag:yaml.org,2002:"):
            raise ChartIndexError(f"the index has the tag {escaped(tag)[:40]}")
        yield event


def _document(events: Iterator[Any]) -> Any:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            return next(events)
    raise ChartIndexError("the index is empty")


def _pairs(events: Iterator[Any], begun: Any) -> Iterator[tuple[str, Any]]:
    """The keys of a mapping, each with the first event of its value, which whoever takes it reads to its end."""
    if not isinstance(begun, yaml.MappingStartEvent):
        raise ChartIndexError("the index is no mapping of charts")
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent):
            raise ChartIndexError("the index has a key that is no text")
        yield key.value, next(events)


def _skip(events: Iterator[Any], event: Any) -> None:
    depth = isinstance(event, BEGINS)
    while depth:
        event = next(events)
        depth += isinstance(event, BEGINS) - isinstance(event, ENDS)


def _value(events: Iterator[Any], event: Any, depth: int) -> Any:
    """A value whose texts, numbers and words are all texts."""
    if depth > DEEPEST:
        raise ChartIndexError(f"the index is nested more than {DEEPEST} deep")
    if isinstance(event, yaml.MappingStartEvent):
        mapping: dict[str, Any] = {}
        for key, value in _pairs(events, event):
            if key in mapping:
                raise ChartIndexError(f"the index has the key {escaped(key)[:40]} twice in an entry")
            mapping[key] = _value(events, value, depth + 1)
        return mapping
    if isinstance(event, yaml.SequenceStartEvent):
        listed: list[Any] = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            listed.append(_value(events, item, depth + 1))
        return listed
    return event.value
