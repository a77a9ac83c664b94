"""Checkpoints that a key signs: what counts with the key, and what without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_checkpoints import tensors

from training.checkpoint.manifest import canonical, seal
from training.checkpoint.store import Store
from training.config.job import JobError
from training.loop import train

KEY = b"0123456789abcdef" * 4


def test_with_a_key_only_what_it_signed_counts(tmp_path: Path) -> None:
    unsigned, signing = Store(tmp_path), Store(tmp_path, key=KEY)
    signing.save(10, tensors(10), {})
    unsigned.save(20, tensors(20), {})

    found = signing.newest()

    assert found.contents is not None
    assert found.contents.step == 10
    assert found.passed_over == [(unsigned.folder(20), "the manifest is not signed by the key of checkpoint.key")]
    assert Store(tmp_path, key=b"another key" * 4).newest().contents is None


def test_a_signed_checkpoint_is_read_without_the_key_too(tmp_path: Path) -> None:
    Store(tmp_path, key=KEY).save(10, tensors(10), {})

    assert Store(tmp_path).newest().contents is not None


def test_a_signature_is_worth_nothing_under_another_body(tmp_path: Path) -> None:
    store = Store(tmp_path, key=KEY)
    for step in (10, 20):
        store.save(step, tensors(step), {})
    newer = store.folder(20) / "manifest.json"
    signed, body = json.loads(newer.read_text()), json.loads((store.folder(10) / "manifest.json").read_text())["body"]
    text = canonical({**body, "step": 20})
    newer.write_text(f'{{"body": {text}, "seal": "{seal(text)}", "signature": "{signed["signature"]}"}}')

    assert [folder for folder, _ in store.newest().passed_over] == [store.folder(20)]


def test_a_job_signs_and_goes_on_from_what_it_signed(tmp_path: Path, small: Callable[..., Any]) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_bytes(KEY)
    train(small("steps=6", "checkpoint.every_steps=3", f"checkpoint.key={key}"))
    forged = Store(tmp_path / "run" / "checkpoints")
    forged.save(9, tensors(9), {"world_size": 1})

    again = train(small("steps=8", f"checkpoint.key={key}"))

    assert (again.steps, again.lost_steps, again.restarts) == (8, 0, 1)
    assert (forged.root / "damaged-step-00000009").is_dir()


def test_a_key_that_others_can_read_is_refused(tmp_path: Path, small: Callable[..., Any]) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o640)

    with pytest.raises(JobError, match=r"checkpoint\.key: others can read .*chmod 600"):
        train(small(f"checkpoint.key={tmp_path / 'key'}"))
