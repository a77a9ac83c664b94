"""The malformed clusters of mistakes.txt, as stack files and as what must be said of them."""

from __future__ import annotations

import re
from pathlib import Path

from clusters import PARTS

_, *SECTIONS = (Path(__file__).parent / "mistakes.txt").read_text().split("\n=== ")
CASES = dict(section.split("\n", 1) for section in SECTIONS)
ABOVE = ("config:", "  gpufleet:cluster:", "    cloud: aws")
CLUSTER_LINE = 2


def stack_file(text: str) -> str:
    """The cluster of a case, below `cloud: aws`."""
    written = [line for line in text.splitlines() if not line.startswith("-")]
    keys = {"cloud"} | {re.split(r"\W", line.lstrip("-"))[0] for line in text.splitlines()}
    keys |= {"zone"} & {key.removesuffix("s") for key in keys}
    right = [f"{key}: {value}" for key, value in PARTS.items() if key not in keys]
    return "\n".join(["cloud: aws", *written, *right])


def expected(text: str) -> list[tuple[int, str, str]]:
    """(line, key, words) of each mark."""
    written = [line for line in text.splitlines() if not line.startswith("-")]
    places = [(CLUSTER_LINE, line) for line in text.splitlines() if line.startswith("-")]
    places += enumerate(written, start=1 + len(ABOVE))
    marks = [(line, *mark.strip().split(": ", 1)) for line, content in places for mark in content.split("#!")[1:]]
    return [(line, f"cluster.{key}", words) for line, key, words in marks]
