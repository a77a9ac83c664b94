"""`bench loop`: our step loop against the bare one, taking turns in the same two processes.

Our loop runs one job. It asks its `stop` once a step on every rank, between gradients and optimizer; there the
benchmark lets the bare loop do its steps, on the same ranks and process group, and hands back. So both see the same
machine, and a turn of one is held against the turn of the other behind it: where a processor's speed changes by half
within a second, the two minima tell who met the fastest spell.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from statistics import median

from training.bench.figure import BenchError, Figure, spread
from training.config.job import Job, load

STEPS = 10  # a turn, with one report: so short that both sides meet the same fast and slow spells of the machine
ROUNDS_A_ROUND = 10  # of each side, a round
GOAL = 0.98
RANKS = 2


def measure(rounds: int) -> Figure:
    """The share of the bare loop's speed that our loop reaches, with its reports and its agreement on interruptions."""
    with tempfile.TemporaryDirectory() as out:
        bench_job = job(out, rounds * ROUNDS_A_ROUND)
        seconds = rounds_of(out, rounds * ROUNDS_A_ROUND)
    ours, bare = seconds["ours"], seconds["bare"]
    kind = f"{bench_job.model.kind} on {bench_job.data.kind}"
    return Figure(
        name="loop",
        what=f"our loop against a bare DDP loop, {RANKS} ranks over gloo",
        value=median(b / o for o, b in zip(ours, bare, strict=True)),
        goal=GOAL,
        rows={
            "ours": spread(ours, STEPS),
            "bare": spread(bare, STEPS),
            "of the minima": f"{min(bare) / min(ours):.3f}; the result is the median of the turns' own ratios",
        },
        settings={
            "job": f"{kind}, batch {bench_job.data.global_batch}, {bench_job.precision.compute}",
            "turn": f"{STEPS} steps, our loop reports every {bench_job.log_every}",
        },
    )


def job(out: str, count: int) -> Job:
    """The shipped MNIST-5k job, long enough for a first turn to warm up and `count` that count."""
    steps = STEPS * (count + 2)
    plain = ["augment.shift=0", "augment.warp=0", "optimizer.kind=adamw", "optimizer.schedule=constant"]
    never = [f"checkpoint.every_steps={10 * steps}", f"eval.every_steps={10 * steps}"]
    return load("mnist", [f"out={out}", f"steps={steps}", *never, *plain])


def rounds_of(out: str, count: int) -> dict[str, list[float]]:
    """Seconds of each side's turns, as rank 0 saw them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {
        "WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    threads = max(1, len(os.sched_getaffinity(0)) // RANKS)
    command = [sys.executable, "-m", "training.bench.loop", out, str(count)]
    ranks = [
        subprocess.Popen(
            command,
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": str(threads)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise BenchError(f"a rank ended with exit code {[rank.returncode for rank in ranks]}")
    return json.loads(outputs[0])


class Rounds:
    """A `stop` that never asks to stop: it counts our steps and gives the bare loop its turn."""

    def __init__(self, bench_job: Job, count: int) -> None:
        self.seconds: dict[str, list[float]] = {"ours": [], "bare": []}
        self._job, self._count = bench_job, count
        self._steps = 0
        self._since = 0.0

    def requested(self) -> bool:
        self._steps += 1
        if self._steps % STEPS == 0 and len(self.seconds["ours"]) < self._count:
            self._run_round()
        return False

    def _run_round(self) -> None:
        from training.bench.bare import Bare

        now = time.perf_counter()
        first = self._steps == STEPS
        if first:
            self._bare = Bare(self._job)  # needs the process group that our loop made
        else:
            self.seconds["ours"].append(now - self._since)
        start = time.perf_counter()
        self._bare.run(STEPS)
        self._since = time.perf_counter()
        if not first:
            self.seconds["bare"].append(self._since - start)


def rank(out: str, count: int) -> None:
    """One of the two processes."""
    from training.loop import train

    bench_job = job(out, count)
    contenders = Rounds(bench_job, count)
    train(bench_job, stop=contenders)
    print(json.dumps(contenders.seconds))


if __name__ == "__main__":
    rank(sys.argv[1], int(sys.argv[2]))
