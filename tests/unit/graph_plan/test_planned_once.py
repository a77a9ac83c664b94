"""`gpufleet plan` loads, plans and checks a stack file once: each of them takes most of a second."""

from __future__ import annotations

import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from infra import checks, policy
from infra.clouds.aws.plan import cluster
from infra.graph import program
from infra.spec import load
from ops.__main__ import app

STEPS: dict[CodeType, str] = {
    load.__code__: "load",
    cluster.decide.__code__: "plan",
    checks.check.__code__: "check",
    program.record.__code__: "render",
    policy.check.__code__: "policy",
}


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_every_step_is_taken_once(form: list[str]) -> None:
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in STEPS:
            calls[STEPS[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        ended = CliRunner().invoke(app, ["plan", "dev-g5", *form])
    finally:
        sys.setprofile(before)

    assert ended.exit_code == 0
    assert calls == dict.fromkeys(STEPS.values(), 1)
