"""A signing key is taken by its whole fingerprint and by nothing else."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from apt_repository import Key
from ssh_hosts import PLAYBOOKS

SCRIPT = PLAYBOOKS / "roles/signing_keys/files/keyring.py"


@pytest.fixture(scope="module")
def keys() -> Iterator[tuple[Key, Key]]:
    if not shutil.which("gpg"):
        pytest.skip("gpg is missing: install the package gpg")
    found = (Key("right"), Key("wrong"))
    yield found
    for key in found:
        key.close()


def put(source: bytes, fingerprint: str, folder: Path, file: str = "ring.gpg") -> subprocess.CompletedProcess[str]:
    (folder / "key.pub").write_bytes(source)
    wanted = {"url": (folder / "key.pub").as_uri(), "fingerprint": fingerprint, "file": str(folder / file)}
    command = [sys.executable, SCRIPT, json.dumps([wanted])]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_right_key_is_put_in_place_once(keys: tuple[Key, Key], tmp_path: Path) -> None:
    first = put(keys[0].public, keys[0].fingerprint, tmp_path)
    second = put(keys[0].public, keys[0].fingerprint, tmp_path)

    assert (first.returncode, first.stdout) == (0, f"{tmp_path / 'ring.gpg'}\n")
    assert (second.returncode, second.stdout) == (0, "")
    told = subprocess.run(["gpg", "--show-keys", tmp_path / "ring.gpg"], capture_output=True, text=True, check=True)
    assert keys[0].fingerprint in told.stdout


def test_a_key_for_rpm_keeps_its_armor_and_nothing_that_stands_behind_it(keys: tuple[Key, Key], tmp_path: Path) -> None:
    right, wrong = keys
    first = put(right.public + wrong.public, right.fingerprint, tmp_path, "ring.asc")
    again = put(right.public + wrong.public, right.fingerprint, tmp_path, "ring.asc")

    assert (first.returncode, again.stdout) == (0, ""), first.stderr
    assert (tmp_path / "ring.asc").read_bytes() == right.public


@pytest.mark.parametrize("armored", [True, False])
def test_no_other_key_is_put_in_place_for_rpm(keys: tuple[Key, Key], tmp_path: Path, armored: bool) -> None:
    right, wrong = keys
    source = wrong.public if armored else binary(right.public)

    refused = put(source, right.fingerprint, tmp_path, "ring.asc")

    assert "the mirror is wrong, or the key was rotated" in refused.stderr
    assert not (tmp_path / "ring.asc").exists()


def test_a_rotated_key_takes_the_place_of_the_old_one(keys: tuple[Key, Key], tmp_path: Path) -> None:
    put(keys[0].public, keys[0].fingerprint, tmp_path)

    rotated = put(keys[1].public, keys[1].fingerprint, tmp_path)

    assert rotated.stdout == f"{tmp_path / 'ring.gpg'}\n"


@pytest.mark.parametrize("source", ["another", "both", "no key", "nothing"])
def test_anything_else_is_refused_in_one_line(keys: tuple[Key, Key], tmp_path: Path, source: str) -> None:
    right, wrong = (binary(key.public) for key in keys)
    text = {"another": wrong, "both": right + wrong, "no key": b"<html>404</html>", "nothing": b""}[source]

    refused = put(text, keys[0].fingerprint, tmp_path)

    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "the mirror is wrong, or the key was rotated" in refused.stderr
    assert not (tmp_path / "ring.gpg").exists()


def test_a_mirror_that_does_not_answer_is_named(tmp_path: Path) -> None:
    wanted = {"url": "http://127.0.0.1:9/key.pub", "fingerprint": "A" * 40, "file": str(tmp_path / "ring.gpg")}

    refused = subprocess.run(
        [sys.executable, SCRIPT, json.dumps([wanted])], capture_output=True, text=True, check=False
    )

    assert refused.returncode == 1
    assert refused.stderr.startswith("key: http://127.0.0.1:9/key.pub: ")
    assert refused.stderr.count("\n") == 1


def binary(armored: bytes) -> bytes:
    body = armored.split(b"\n\n", 1)[1].split(b"\n=", 1)[0]
    return base64.b64decode(body)
