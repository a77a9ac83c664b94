"""What a person sees, at a terminal and elsewhere; what others say as they say it, for a bracket in it is no markup."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from ops.phases import Phases
from ops.report import Progress
from ops.terminal import show

SAID = ["unmounted volumes=[data], unattached volumes=[data]", "container runtime is down [/dev/nvme1n1]"]


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def console(request: pytest.FixtureRequest) -> Console:
    return Console(file=io.StringIO(), force_terminal=request.param, width=200, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("said", SAID)
def test_phases_show_what_they_are_told(console: Console, said: str) -> None:
    phases = Phases(console)

    with phases.phase("nodes") as phase:
        phase.say(said)
    phases.note(f"note: {said}")
    phases.command(f"pulumi up {said}")

    assert f"nodes       {said}" in written(console)
    assert f"note: {said}" in written(console)
    assert f"$ pulumi up {said}" in written(console)


@pytest.mark.parametrize("said", SAID)
def test_a_run_that_waits_tells_the_whole_reason(console: Console, said: str) -> None:
    with Progress(console, quiet=False) as progress:
        progress.event({"event": "waiting", "reason": said})

    assert f"waiting: {said}" in written(console)


def test_a_run_is_followed_from_its_start(console: Console) -> None:
    with Progress(console, quiet=False) as progress:
        progress.event({"event": "start", "parameters": 1200, "world_size": 2, "steps": 10})
        progress.event({"event": "step", "step": 5, "steps": 10, "loss": 0.5, "samples_per_second": 1000.0})

    assert "1,200 parameters · 2 ranks · 10 steps" in written(console)
    assert "step     5/10  loss 0.5000  1,000 samples/s" in written(console)


@pytest.mark.parametrize("said", SAID)
def test_a_document_is_shown_as_its_text(capsys: pytest.CaptureFixture[str], said: str) -> None:
    def text(told: dict[str, Any]) -> str:
        return told["reason"]

    show({"reason": said}, as_json=False, text=text)

    assert capsys.readouterr().out == f"{said}\n"
