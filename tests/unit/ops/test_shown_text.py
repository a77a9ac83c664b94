"""What a person sees, at a terminal and elsewhere: what others say, in which no bracket is markup and no character is
obeyed by the terminal."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

import ops
from ops.clouds.aws.resource_ids import Arn
from ops.clouds.aws.tagged_resources import TaggedResource
from ops.commands import status, sweep
from ops.console.phases import Phases
from ops.console.terminal import Screen, show, write, write_fault
from ops.errors import CommandError
from ops.jobs.progress import Progress
from ops.nodes.ssh import NodeState

ESCAPES = {
    "cursor up, and a forged line": "\x1b[1A\x1b[2K  node-2       10.0.0.12        ready",
    "another line": "lost\n  node-2       10.0.0.12        ready",
    "carriage return": "lost\r  node-2       10.0.0.12        ready",
    "window title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\\\click\x1b]8;;\x1b\\\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "C1 control sequence": "\x9b2J\x9d0;owned\x9c",
    "backspaces": "not ready" + "\b" * 9 + "ready",
    "right to left": "\u202eydaer si 2-edon\u202c \u2066x\u2069 \u200f",
    "separators": "lost\u2028  node-2 ready\u2029x\x85y\x0bz\x0cw\x1cv",
    "half a pair": "\ud83d",
    "markup": "[bold]ready[/bold] [link=http://evil.example]x[/link] :warning:",
    "nothing and delete": "\x00\x7f\u200b\ufeff",
}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")

SAID = ["unmounted volumes=[data], unattached volumes=[data]", "container runtime is down [/dev/nvme1n1]"]


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def console(request: pytest.FixtureRequest) -> Screen:
    return Screen(file=io.StringIO(), force_terminal=request.param, width=200, color_system=None)


def written(console: Screen) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("said", SAID)
def test_phases_show_what_they_are_told(console: Screen, said: str) -> None:
    phases = Phases(console)

    with phases.phase("nodes") as phase:
        phase.say(said)
    phases.note(f"note: {said}")
    phases.command(f"pulumi up {said}")

    assert f"nodes       {said}" in written(console)
    assert f"note: {said}" in written(console)
    assert f"$ pulumi up {said}" in written(console)


@pytest.mark.parametrize("said", SAID)
def test_a_run_that_waits_tells_the_whole_reason(console: Screen, said: str) -> None:
    with Progress(console, quiet=False) as progress:
        progress.event({"event": "waiting", "reason": said})

    assert f"waiting: {said}" in written(console)


def test_a_run_is_followed_from_its_start(console: Screen) -> None:
    with Progress(console, quiet=False) as progress:
        progress.event({"event": "start", "parameters": 1200, "world_size": 2, "steps": 10})
        progress.event({"event": "step", "step": 5, "steps": 10, "loss": 0.5, "samples_per_second": 1000.0})

    assert "1,200 parameters · 2 ranks · 10 steps" in written(console)
    assert "step     5/10  loss 0.5000  1,000 samples/s" in written(console)


@pytest.mark.parametrize("said", SAID)
def test_a_document_is_shown_as_its_text(capsys: pytest.CaptureFixture[str], said: str) -> None:
    def text(document: dict[str, Any]) -> str:
        return document["reason"]

    show({"reason": said}, as_json=False, text=text)

    assert capsys.readouterr().out == f"{said}\n"


@pytest.fixture
def paper() -> Screen:
    """A console that is no terminal: Rich itself writes no control sequence to it."""
    return Screen(file=io.StringIO(), force_terminal=False, width=200)


@pytest.mark.parametrize("said", ESCAPES.values(), ids=ESCAPES.keys())
def test_no_phase_lets_others_steer_the_terminal_or_add_a_line(paper: Screen, said: str) -> None:
    phases = Phases(paper)

    with phases.phase("nodes") as phase:
        phase.say(said)
    phases.note(said)
    phases.command(said)

    assert len(written(paper).splitlines()) == 3
    assert not OBEYED.search(written(paper))


@pytest.mark.parametrize("said", ESCAPES.values(), ids=ESCAPES.keys())
def test_whatever_is_put_on_the_screen_is_text(paper: Screen, said: str) -> None:
    for renderable in (said, Text(said), Padding(Text(said), 1), Panel(said)):
        paper.print(renderable)

    assert not OBEYED.search(written(paper))


@pytest.mark.parametrize("said", ESCAPES.values(), ids=ESCAPES.keys())
def test_a_live_line_shows_no_sequence_but_richs_own(said: str) -> None:
    live = Screen(file=io.StringIO(), force_terminal=True, width=200)

    with Phases(live).phase("nodes") as phase, Progress(live, quiet=False) as progress:
        phase.say(said)
        progress.event({"event": "waiting", "reason": said})

    rest = re.sub(r"\x1b\[(\?25[lh]|\d*[AK]|[\d;]*m)", "", written(live))
    assert not OBEYED.search(rest.replace("\r", ""))
    assert all(part not in written(live) for part in said.splitlines() if OBEYED.search(part))


@pytest.mark.parametrize("said", ESCAPES.values(), ids=ESCAPES.keys())
def test_a_node_cannot_forge_another_nodes_line(capsys: pytest.CaptureFixture[str], said: str) -> None:
    nodes = [NodeState(said, said, said, "not ready", said), NodeState("node-2", "node", "10.0.0.12", "unreachable")]
    cost = {"hourly": None, "unknown": "nobody"}
    document = {"stack": "s", "cloud": "local", "nodes": [n.as_json() for n in nodes], "run": None, "cost": cost}

    show(document, as_json=False, text=status.text)
    text = capsys.readouterr().out
    show(document, as_json=True, text=status.text)

    assert len(text.splitlines()) == 5
    assert not OBEYED.search(text)
    assert capsys.readouterr().out.isascii()


@pytest.mark.parametrize("said", ESCAPES.values(), ids=ESCAPES.keys())
def test_a_tag_or_a_failure_is_lines_of_plain_text(capsys: pytest.CaptureFixture[str], said: str) -> None:
    orphan = str(
        TaggedResource(Arn.parse("arn:aws:ec2:us-east-1:1:instance/i-1"), {"gpufleet:name": said, "Name": said})
    )

    write(sweep.text({"stack": "s", "removed": [], "strays": [orphan]}))
    write(str(CommandError(f"node-1: {said}")), error=True)
    write_fault(ValueError, ValueError(said), None)

    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert not OBEYED.search(out + err)


def test_nothing_is_printed_around_the_terminals_module() -> None:
    """A print of a module's own would show what others say as it is."""
    around = [
        f"{file.name}: {ast.unparse(node)}"
        for file in sorted(Path(ops.__file__).parent.rglob("*.py"))
        if file.name != "terminal.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if "process.stdin" not in ast.unparse(node)  # what a program of ours reads is no screen
        and re.fullmatch(
            r"print|pprint|echo|secho|Console|(typer|click|rich|console)\.\w+\b.*echo|(typer|click)\.(echo|secho|confirm)"
            r"|sys\.(stdout|stderr)\.\w+|os\.write|logging\.\w+",
            ast.unparse(node.func) if isinstance(node, ast.Call) else "",
        )
    ]

    assert around == []
