"""Suggests the known name that a misspelt one probably means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

LEAST_LETTERS = 3  # shorter words are like too many
ELSEWHERE = {"mig": "unknown key; only node groups of some clouds can cut their GPUs into slices"}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, whatever its case; None if none is close."""
    spelt = {each.lower(): each for each in known}
    matches = get_close_matches(word.lower(), spelt, n=1) if len(word) >= LEAST_LETTERS else []
    return spelt[matches[0]] if matches else None


def hint(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: "; did you mean 'count'?", or nothing."""
    meant = nearest(word, known)
    return f"; did you mean '{meant}'?" if meant else ""


def unknown_keys(unknown: Iterable[str], missing: Iterable[str], known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """One (key, message) a mistake among the keys of one mapping: a misspelt key is not also a missing one."""
    missing, known = list(missing), list(known)
    for key in unknown:
        if key in ELSEWHERE:
            yield key, ELSEWHERE[key]
            continue
        meant = nearest(key, missing)
        if meant:
            missing.remove(meant)
        did_you_mean = hint(key, [meant] if meant else known)
        yield key, f"unknown key{did_you_mean}" if did_you_mean else f"unknown key; known here: {', '.join(known)}"
    for key in missing:
        yield key, "is missing"
