"""`bench slowlink`: PowerSGD against whole gradients over a link of 200 Mbit/s between two hosts.

The hosts are two network namespaces with one veth pair, each end limited by tc's token bucket; needs root. The same
ResNet-18 job runs over it both ways. 45 MB of gradients take 1.8 s over the link; images of 32 pixels, four a rank, in
the layout that is the faster one for so few, keep the time of a rank's one core near that of a GPU on a real batch, so
that the link decides. The bytes are the kernel's count at rank 0's end. Accuracy is that of the MNIST-5k job on two
ranks of this machine, both ways, the mean of three seeds: of 1,000 digits a seed moves it by more than half a point.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

from training.bench.accuracy import SEEDS, launched
from training.bench.figure import BenchError, Figure
from training.metrics.events import Report, Step

RATE = "200mbit"
RANK = 4
GOAL = 10.0
STEPS = {"none": 7, "powersgd": 22}  # the first one of each is not counted
RANK_SECONDS = 600
ACCURACY_STEPS = 310


def measure() -> Figure:
    """How many times as fast a step is with PowerSGD."""
    if os.geteuid() != 0 or shutil.which("tc") is None:
        raise BenchError("slowlink makes network namespaces: run it as root, with iproute2 installed")
    with tempfile.TemporaryDirectory() as folder, link() as hosts:
        whole, thin = (over(hosts, Path(folder) / mode, mode) for mode in ("none", "powersgd"))
    scores = {mode: accuracy(mode) for mode in ("none", "powersgd")}
    lost = 100 * (scores["none"] - scores["powersgd"])
    return Figure(
        name="slowlink",
        what=f"step time of whole gradients over PowerSGD of rank {RANK}, 2 hosts, {RATE}",
        value=whole["seconds"] / thin["seconds"],
        goal=GOAL,
        rows={
            "whole gradients": f"min {1e3 * whole['seconds']:.0f} ms a step, {whole['bytes'] / 1e6:.2f} MB",
            "PowerSGD": f"min {1e3 * thin['seconds']:.0f} ms a step, {thin['bytes'] / 1e6:.2f} MB",
            "bytes": f"{thin['bytes'] / whole['bytes']:.2%} (goal 2 % or less)",
            "accuracy": f"{scores['none']:.2%} whole, {scores['powersgd']:.2%} PowerSGD: {lost:.2f} points lost "
            f"(goal 0.5 or less)",
        },
        settings={
            "job": "resnet18, 32 pixels, batch 8",
            "accuracy of": f"mnist, {ACCURACY_STEPS} steps, 2 ranks, {len(SEEDS)} seeds",
        },
    )


@contextmanager
def link() -> Iterator[list[str]]:
    """Two namespaces with an address each on one slow link; gone at the end."""
    names = [f"gpufleet-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        ends = [f"gf{os.getpid() % 100000}{side}" for side in "ab"]
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for number, (name, end) in enumerate(zip(names, ends, strict=True), 1):
            ip("link", "set", end, "netns", name)
            inside = ["-n", name]
            ip(*inside, "link", "set", end, "name", "slow0")
            ip(*inside, "addr", "add", f"10.78.0.{number}/24", "dev", "slow0")
            ip(*inside, "link", "set", "slow0", "up")
            ip(*inside, "link", "set", "lo", "up")
            bucket = ["tbf", "rate", RATE, "burst", "256kb", "latency", "200ms"]
            done("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "slow0", "root", *bucket)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ip(*arguments: str) -> None:
    done("ip", *arguments)


def done(*command: str) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        raise BenchError(f"{' '.join(command)}: {result.stderr.strip()}")


def over(hosts: list[str], out: Path, mode: str) -> dict[str, float]:
    """Seconds of the fastest step, and bytes a step, as rank 0 saw them."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "10.78.0.1", "MASTER_PORT": "29511", "GLOO_SOCKET_IFNAME": "slow0"}
    command = [sys.executable, "-m", "training.bench.slowlink", str(out), mode]
    ranks = [
        subprocess.Popen(
            ["ip", "netns", "exec", host, *command],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, host in enumerate(hosts)
    ]
    try:
        outputs = [rank.communicate(timeout=RANK_SECONDS)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    if any(rank.returncode for rank in ranks):
        raise BenchError(f"a rank ended with exit code {[rank.returncode for rank in ranks]}")
    return json.loads(outputs[0])


def accuracy(mode: str) -> float:
    """The MNIST-5k job's, the mean of the seeds."""
    way = [f"steps={ACCURACY_STEPS}", f"parallel.compress={mode}", f"parallel.rank={RANK}"]
    with tempfile.TemporaryDirectory() as folder:
        return mean(launched("mnist", Path(folder) / f"seed-{seed}", *way, f"seed={seed}")[0] for seed in SEEDS)


class Counted(Report):
    """Time and bytes of every step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.bytes: list[int] = []

    def step(self, step: Step) -> None:
        self.seconds.append(step.seconds)
        self.bytes.append(int(Path("/sys/class/net/slow0/statistics/tx_bytes").read_text()))

    def least(self) -> dict[str, Any]:
        steps = len(self.seconds) - 1
        seconds = min(later - before for before, later in zip(self.seconds, self.seconds[1:], strict=False))
        return {"seconds": seconds, "bytes": (self.bytes[-1] - self.bytes[0]) / steps}


def rank(out: str, mode: str) -> None:
    """One of the two processes."""
    from training.config.job import load
    from training.loop import train

    way = [f"parallel.compress={mode}", f"parallel.rank={RANK}", f"steps={STEPS[mode]}", "log_every=1"]
    images = ["data.image_size=32", "data.samples=64", "data.held_out=2"]
    small = [*images, "data.global_batch=8", "model.channels_last=false"]
    plain = [f"checkpoint.every_steps={10 * STEPS[mode]}", "tensorboard=false", "optimizer.warmup_steps=0"]
    counted = Counted()
    train(load("resnet18-synthetic", [f"out={out}", *way, *small, *plain]), report=counted)
    if counted.seconds:  # the loop tells rank 0 alone
        print(json.dumps(counted.least()))


if __name__ == "__main__":
    rank(sys.argv[1], sys.argv[2])
