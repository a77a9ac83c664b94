"""Metrics, results and reports of a job may be anything: what is wrong in them is left out or named in one line."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

import pytest
from hostile import in_place_of

from ops import untrusted
from ops.untrusted import Report, Result, UnreadableError
from training.metrics import result


def test_hostile_metrics_are_left_out_line_by_line() -> None:
    good = {"step": 5, "steps": 10, "loss": 2.0, "lr": 0.1, "samples_per_second": 9.5, "seconds": 1.0}
    bad = b"\n".join(in_place_of({"step": "x"}))

    rows = list(untrusted.metrics(bad + b"\n" + json.dumps(good).encode() + b"\n"))

    assert rows[-1] == good
    assert all(isinstance(row["step"], int) for row in rows)


def test_a_result_is_read_with_all_that_training_writes() -> None:
    written = result.Result(
        name="x", steps=1, digest="d", accuracy=None, loss=0.5, samples_per_second=1.0, lost_steps=0, restarts=0,
        seconds=1.0, world_size=1, finished=True, device="cpu", compute="fp32", channels_last=False, trial_seconds=None,
        versions={"torch": "2"},
    )  # fmt: skip

    assert set(Result.model_fields) == {field.name for field in fields(result.Result)}
    assert untrusted.parsed(Result, json.dumps(asdict(written))).model_dump() == asdict(written)


def test_an_unreadable_document_is_said_to_be_so_in_one_line() -> None:
    with pytest.raises(UnreadableError, match=r"^checks\.0\.ok: [\x20-\x7e]+$"):
        untrusted.parsed(Report, b'{"ready": true, "checks": [{"name": "a", "ok": "\\u001b[2J"}]}')
