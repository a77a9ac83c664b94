"""Output of a training run: its progress, then its result and picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from infra.printable import one_line
from ops.console.terminal import Screen
from ops.jobs.base import Outcome
from ops.project import Project

PLAIN_LINES = 10  # progress lines of a whole run where there is no terminal


class Progress:
    """A bar on a terminal, a line every tenth of the run elsewhere, nothing when quiet."""

    def __init__(self, console: Screen, *, quiet: bool) -> None:
        self.console, self.quiet, self.reported = console, quiet, -1
        self.bar = Bar(
            TextColumn("  {task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=None)

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def event(self, event: dict[str, Any]) -> None:
        """Takes one event of a run, as the launcher prints them."""
        match event["event"]:
            case "start":
                self.line(
                    f"  {event['parameters']:,} parameters · {event['world_size']} ranks · {event['steps']} steps"
                )
                self.bar.update(self.task, total=event["steps"])
            case "step":
                self.step(event)
            case "eval":
                self.line(f"  step {event['step']}: held-out accuracy {100 * event['accuracy']:.1f} %")
            case "waiting":
                self.line(f"  waiting: {event['reason']}")
            case "stopping":
                self.line("  stopping: one more step, then a checkpoint (Ctrl-C again kills it)")

    def step(self, event: dict[str, Any]) -> None:
        speed = f"{event['samples_per_second']:,.0f} samples/s"
        text = f"step {event['step']:>5}/{event['steps']}  loss {event['loss']:.4f}  {speed}"
        self.bar.update(self.task, completed=event["step"], description=text)
        tenth = PLAIN_LINES * event["step"] // event["steps"]
        if not self.console.is_terminal and tenth > self.reported:
            self.reported = tenth
            self.line(f"  {text}")

    def line(self, text: str) -> None:
        if not self.quiet:
            self.console.print(one_line(text))


def document(project: Project, stack: str, outcome: Outcome) -> dict[str, Any]:
    """The document of `--json`: the run's result and its files. Draws the picture."""
    from training.metrics import plot

    folder, result = outcome.run.folder, outcome.result
    image = folder / "run.png"
    plot.draw(folder / "metrics.jsonl", image, f"{outcome.run.name} on {stack}")
    return {
        "stack": stack,
        "run": outcome.run.name,
        "resumed": outcome.resumed,
        **result,
        "result": shown(folder / "result.json", project.root),
        "picture": shown(image, project.root),
    }


def text(document: dict[str, Any]) -> str:
    accuracy = "" if document["accuracy"] is None else f"accuracy {100 * document['accuracy']:.1f} %   "
    speed = f"{document['samples_per_second']:,.0f} samples/s on {document['world_size']} ranks"
    lost = f"   {document['lost_steps']} steps lost in {document['restarts']} restarts" if document["restarts"] else ""
    files = f"  result: {document['result']}   picture: {document['picture']}"
    return f"  {accuracy}{document['seconds']:.0f} s   {speed}{lost}\n{files}"


def shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root))
