"""`python -m training bench NAME… [--json] [--rounds K]`: our figures, measured against baselines that are kept as
code.

Ours and the baseline alternate in one run on one machine, at least five rounds; the minimum of each counts, since
noise only ever adds. A benchmark is no test: the exit code is 0 whether a figure is reached or missed.

    loop            our step loop against a bare hand-written DDP loop (bare.py), 2 ranks
    naive           our job against a script as articles write it (article.py), 1 process
    naive-resnet50  the same with a ResNet-50 on images of 224 pixels
    augment         our batched changes of images against Pillow one by one
    auto            what compute = "auto" chooses, against fp32 in the plain layout
    checkpoint      time that a save keeps the loop waiting, against torch.distributed.checkpoint.save
    interval        what saves cost in wall time at the interval that loses least
    timm            our loop against timm's loader and loop, ResNet-18 on JPEG files, both in the mode of `auto`;
                    needs `make peers`, as the next
    trainer         against Hugging Face's Trainer, a small BERT
    accelerate      against a loop with Hugging Face's Accelerate, the small CNN
    accelerate-save as `checkpoint`, against Accelerate's save_state
    lightning-save  the same against Lightning's Fabric.save
    gpu-resnet50    ResNet-50 against the settings of pytorch/examples; needs a GPU, as the next two
    gpu-timm        ResNet-50 against timm
    gpu-gpt         MFU of a GPT of 124 million parameters
    slowlink        PowerSGD against whole gradients between two network namespaces, 200 Mbit/s; needs root
    accuracy        the shipped MNIST-5k job on 2 ranks through the launcher, 3 seeds
    accuracy-spam   the shipped SpamAssassin job, likewise
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module

from training.bench.figure import BenchError, Figure, machine

ALONE = ("slowlink", "accuracy", "accuracy-spam")  # these have no rounds
OTHERS = {  # several figures of one module
    "naive-resnet50": "naive.resnet50",
    "accuracy-spam": "accuracy.spam",
    "timm": "peers.timm",
    "trainer": "peers.trainer",
    "accelerate": "peers.accelerate",
    "accelerate-save": "peers.accelerate_save",
    "lightning-save": "peers.lightning_save",
    "gpu-resnet50": "gpu.resnet50",
    "gpu-timm": "gpu.timm",
    "gpu-gpt": "gpu.gpt",
}
NAMES = ("loop", "naive", "augment", "auto", "checkpoint", "interval", *OTHERS, "slowlink", "accuracy")
LEAST_ROUNDS, USUAL_ROUNDS = 5, 10


def main(argv: Sequence[str]) -> int:
    """Run `bench NAME…`: print a table, or one JSON object with --json; returns 0 unless one could not be run."""
    parser = argparse.ArgumentParser(prog="python -m training bench", allow_abbrev=False)
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument(
        "--rounds", type=rounds, default=USUAL_ROUNDS, metavar="K", help="rounds per contender (%(default)s)"
    )
    args = parser.parse_args(argv[1:])
    try:
        figures = [measured(name, args.rounds) for name in args.names]
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    document = {"machine": machine(), "figures": [{**asdict(figure), "verdict": figure.verdict} for figure in figures]}
    print(json.dumps(document) if args.json else table(document["machine"], figures))
    return 0


def measured(name: str, count: int) -> Figure:
    """The figure of a benchmark. count: rounds per contender."""
    module, _, function = OTHERS.get(name, f"{name}.measure").partition(".")
    measure = getattr(import_module(f"training.bench.{module}"), function)
    return measure() if name in ALONE else measure(count)


def rounds(text: str) -> int:
    """At least five, for argparse."""
    if not text.isdecimal() or int(text) < LEAST_ROUNDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds from {LEAST_ROUNDS} on")
    return int(text)


def table(on: dict[str, str], figures: Sequence[Figure]) -> str:
    """The figures as plain text."""
    lines = ["  ".join(f"{key} {value}" for key, value in on.items())]
    for figure in figures:
        lines += ["", f"{figure.name}: {figure.what}"]
        lines += [f"  {key:<21} {value}" for key, value in (*figure.rows.items(), *figure.settings.items())]
        lines += [f"  {'result':<21} {figure.value:.3f}, goal {figure.goal:g} or more: {figure.verdict}"]
    return "\n".join(lines)
