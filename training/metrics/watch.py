"""`python -m training watch RUN`: follows a run on the terminal, from the files that it writes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from training import strict
from training.metrics.result import RESULT

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a curve
REFRESH_SECONDS = 0.5
REPORTED = {"loss", "lr", "samples_per_second", "seconds"}  # of a step


def main(argv: Sequence[str]) -> int:
    """Returns 0 when the run has a result, 1 where the folder holds no run, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m training watch", allow_abbrev=False)
    parser.add_argument("run", metavar="RUN", type=Path, help="the run's folder")
    parser.add_argument("--once", action="store_true", help="one picture of now, then end")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw it into a PNG instead")
    args = parser.parse_args(argv[1:])
    if not (args.run / "metrics.jsonl").is_file():
        print(f"{args.run} holds no run: it has no metrics.jsonl; give the job's `out`", file=sys.stderr)
        return 1
    if args.picture:
        from training.metrics.plot import draw

        draw(args.run / "metrics.jsonl", args.picture, args.run.name)
        return 0
    console = Console()
    if args.once or not console.is_terminal:
        console.print(view(args.run))
        return 0
    try:
        with Live(view(args.run), console=console, auto_refresh=False) as live:
            while not (args.run / RESULT).is_file():
                time.sleep(REFRESH_SECONDS)
                live.update(view(args.run), refresh=True)
            live.update(view(args.run), refresh=True)
    except KeyboardInterrupt:
        return 130
    return 0


def records(run: Path) -> list[dict[str, Any]]:
    """The whole lines of metrics.jsonl, of numbers alone; the last one may be half written."""
    return [row for row in strict.rows(run / "metrics.jsonl") if all(map(strict.number, row.values()))]


def view(run: Path) -> RenderableType:
    """Progress, the last figures, and the curves of loss and accuracy."""
    rows = records(run)
    steps = [r for r in rows if r["step"] > 0 and r.keys() >= REPORTED]
    scores = [r for r in rows if "accuracy" in r]
    if not steps:
        return Text(f"{run.name}: no step is reported yet")
    last, total = steps[-1], steps[-1].get("steps", steps[-1]["step"])
    left = (total - last["step"]) * last["seconds"] / last["step"]
    table = Table.grid(padding=(0, 2))
    table.add_row(
        run.name, f"step {last['step']:,} of {total:,}", ProgressBar(total, last["step"], width=30), eta(left)
    )
    table.add_row("loss", f"{last['loss']:.4f}", curve([r["loss"] for r in steps]), f"lr {last['lr']:.3g}")
    speed = [r["samples_per_second"] for r in steps]
    table.add_row("samples/s", f"{speed[-1]:,.0f}", curve(speed), extra(last))
    if scores:
        accuracy = [r["accuracy"] for r in scores]
        table.add_row("accuracy", f"{accuracy[-1]:.2%}", curve(accuracy), f"best {max(accuracy):.2%}")
    return Group(table)


def extra(last: dict[str, Any]) -> str:
    """MFU and the straggler score, where the run has them."""
    formats = {"mfu": "MFU {:.1%}", "straggler": "slowest rank {:.2f}×"}
    return "  ".join(template.format(last[key]) for key, template in formats.items() if last.get(key) is not None)


def curve(values: Sequence[float]) -> str:
    """The last values as a line of bars, the lowest empty and the highest full."""
    shown = values[-WIDTH:]
    low, high = min(shown), max(shown)
    span = (high - low) or 1.0
    return "".join(BARS[int((value - low) / span * (len(BARS) - 1))] for value in shown)


def eta(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s left" if minutes else f"{rest} s left"
