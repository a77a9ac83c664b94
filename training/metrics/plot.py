"""Draws the loss and the accuracy of a run over its steps."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # no window: the picture is a file

from matplotlib import pyplot as plt


def draw(metrics: Path, picture: Path, title: str) -> None:
    """Draws `metrics.jsonl` into a PNG: training loss per logged step on the left, held-out accuracy on the right."""
    rows = [json.loads(line) for line in metrics.read_text().splitlines() if line.endswith("}")]
    train, held_out = [r for r in rows if "loss" in r], [r for r in rows if "accuracy" in r]
    figure, left = plt.subplots(figsize=(8, 4.5), layout="constrained")
    left.set(title=title, xlabel="step", ylabel="training loss", yscale="log")
    left.grid(alpha=0.25)
    handles = left.plot([r["step"] for r in train], [r["loss"] for r in train], color="tab:blue", label="loss")
    if held_out:
        percent = [100 * r["accuracy"] for r in held_out]
        right = left.twinx()
        right.set(ylabel="held-out accuracy, %", ylim=(min(90, min(percent) - 2), 100.5))
        handles += right.plot([r["step"] for r in held_out], percent, "o-", color="tab:orange", label="accuracy")
        right.set_title(f"{percent[-1]:.1f} %", loc="right", color="tab:orange")
    left.legend(handles=handles, loc="lower left")
    figure.savefig(picture, dpi=120)
    plt.close(figure)
