"""Where the key of a rendezvous store comes from, and which places of a key are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from training.elastic.rendezvous.errors import StoreKeyError
from training.elastic.rendezvous.key import VARIABLE, new_key, store_key

KEY = new_key().encode()


def keyed(make: bool = False, source: str | None = None) -> bytes:
    return store_key(source, make=make)


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the key of this login is by default."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "gpufleet" / "store.key"


def test_a_store_makes_the_key_that_launchers_of_its_login_find(own_state: Path) -> None:
    made = keyed(make=True)

    assert made == keyed() == keyed(make=True) == keyed(source=str(own_state))
    assert len(made) == 64
    assert own_state.stat().st_mode & 0o777 == 0o600
    assert [*own_state.parent.iterdir()] == [own_state]


def test_a_launcher_without_a_key_is_told_which_file_to_copy(own_state: Path) -> None:
    with pytest.raises(StoreKeyError) as end:
        keyed()
    assert f"{own_state} does not exist; copy it" in str(end.value)


def test_the_key_in_the_environment_is_not_passed_on(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY.decode())

    assert keyed() == KEY
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("rest", [b"", b"what comes next"])
def test_only_the_key_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch, rest: bytes) -> None:
    reader, writer = os.pipe()
    os.write(writer, KEY + b"\n" + rest)
    os.close(writer)
    monkeypatch.setattr("training.elastic.rendezvous.key.STDIN", reader)

    assert keyed(source="-") == KEY
    assert os.read(reader, 100) == rest
    os.close(reader)


def readable(file: Path) -> None:
    file.write_bytes(KEY)
    file.chmod(0o644)


def link(file: Path) -> None:
    target = file.with_name("target")
    target.write_bytes(KEY)
    target.chmod(0o600)
    file.symlink_to(target)


def short(file: Path) -> None:
    file.touch(0o600)
    file.write_text("secret")


BAD_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "readable": (readable, "others can read"),
    "link": (link, "cannot use the store's key"),
    "pipe": (partial(os.mkfifo, mode=0o600), "must be a file of this login"),
    "folder": (Path.mkdir, "must be a file of this login"),
    "short": (short, "must hold a key"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_that_keeps_no_secret_is_refused(tmp_path: Path, what: str) -> None:
    make, says = BAD_FILES[what]
    make(tmp_path / "key")

    with pytest.raises(StoreKeyError) as end:
        keyed(source=str(tmp_path / "key"))
    assert says in str(end.value)
