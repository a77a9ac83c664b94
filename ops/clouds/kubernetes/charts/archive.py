"""A chart's archive, looked into without unpacking it: whether it is the chart and the version that it goes by.

Source: Helm, "Charts" (CHART/Chart.yaml with `name` and `version`).
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import IO, Any, cast

import yaml

MOST_UNPACKED, MOST_MEMBERS, MOST_NAMED = 128 * 2**20, 20_000, 2**20


def problem(archive: bytes, chart: str, version: str) -> str:
    """Empty where it is the chart."""
    try:
        said = _about(archive, chart)
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, yaml.YAMLError, RecursionError):
        return "the archive cannot be read as a chart"
    if said is None:
        return f"the archive has no {chart}/Chart.yaml"
    if said != (chart, version):
        return f"the archive is another chart: {said[0]!r} {said[1]!r}"
    return ""


def _about(archive: bytes, chart: str) -> tuple[str, str] | None:
    with tarfile.open(fileobj=cast("IO[bytes]", _Bounded(archive)), mode="r|") as members:
        for count, member in enumerate(members):
            if count > MOST_MEMBERS:
                return None
            if member.name == f"{chart}/Chart.yaml" and member.isreg() and member.size <= MOST_NAMED:
                file = members.extractfile(member)
                about: Any = {} if file is None else _plain(file.read(MOST_NAMED))
                return str(about.get("name", "")), str(about.get("version", ""))
    return None


def _plain(text: bytes) -> dict[str, Any]:
    """The top level of a small file of YAML, as texts; aliases have no place in it."""
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise ValueError("aliases")
    read = yaml.load(text, Loader=yaml.BaseLoader)
    if not isinstance(read, dict):
        raise ValueError("no mapping")
    return read


class _Bounded:
    """What an archive unpacks to, with an end where it is more than a chart has."""

    def __init__(self, archive: bytes) -> None:
        self._unpacked, self._bytes = gzip.GzipFile(fileobj=io.BytesIO(archive)), 0

    def read(self, size: int) -> bytes:
        piece = self._unpacked.read(size)
        self._bytes += len(piece)
        if self._bytes > MOST_UNPACKED:
            raise ValueError("unpacks to more than a chart has")
        return piece
