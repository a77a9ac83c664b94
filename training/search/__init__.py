"""`python -m training search FILE`: hyper-parameter search by Optuna, in parallel, pruned, resumed after a kill.

A search file names a job, what to vary and how often to try. Every trial is a run of its own under `out`; the study is
an SQLite file there, so that the same command goes on where it stopped, and any number of workers share it. Trials are
judged on a fold of the training set: the held-out samples choose nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from training.config.job import JobError
from training.elastic.launch import positive
from training.elastic.worker import die_with
from training.search.plan import Plan, assignments, read
from training.search.study import Outcome, leave, opened, outcomes, work


def main(argv: Sequence[str]) -> int:
    """Returns 0 when all trials are done, 1 when a worker failed or was killed, 2 for a wrong file, 130 if stopped."""
    parser = argparse.ArgumentParser(prog="python -m training search", allow_abbrev=False, description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a search file")
    parser.add_argument("--workers", type=positive, default=1, metavar="N", help="processes that try (%(default)s)")
    parser.add_argument("--json", action="store_true", help="the trials as JSON")
    parser.add_argument("--worker-of", type=positive, metavar="PID", help=argparse.SUPPRESS)
    args = parser.parse_args(argv[1:])
    try:
        plan = read(args.file)
        if args.worker_of:
            die_with(args.worker_of)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: that one ends us
            return work(plan)
    except JobError as error:
        print(error, file=sys.stderr)
        return 2
    opened(plan)
    code = together(args.file, args.workers)
    trials = outcomes(plan)
    print(json.dumps([trial.to_json() for trial in trials]) if args.json else table(plan, trials))
    return code


def together(file: str, workers: int) -> int:
    """Runs the workers; their trials share the study. What a worker says goes to standard error."""
    command = [sys.executable, "-m", "training", "search", file, "--worker-of", str(os.getpid())]
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does
    running = [subprocess.Popen(command, stdout=sys.stderr) for _ in range(workers)]
    try:
        return max(ended(worker.wait()) for worker in running)
    except KeyboardInterrupt:
        return leave(running)
    finally:
        signal.signal(signal.SIGTERM, before)


def ended(code: int) -> int:
    """How a worker ended: its exit code, or 1 where a signal killed it, as the kernel does when memory is full."""
    if code >= 0:
        return code
    why = f"a worker was killed by {signal.Signals(-code).name}"
    print(f"{why}; start the search again, with fewer --workers where memory was full: it goes on", file=sys.stderr)
    return 1


def table(plan: Plan, trials: list[Outcome]) -> str:
    """The best trials, best first, and how to run the best one in full."""
    done = [trial for trial in trials if trial.accuracy is not None]
    lines = [f"{len(trials)} trials, {sum(trial.state == 'pruned' for trial in trials)} pruned: {plan.study}"]
    for trial in done[:10]:
        values = "  ".join(f"{key} {short(value)}" for key, value in trial.values.items())
        lines.append(f"  trial {trial.number:<4}{trial.accuracy:.2%}  {values}")
    if done:
        sets = " ".join(f"--set {assignment}" for assignment in assignments(done[0].values))
        lines.append(f"python -m training run {plan.job} {sets}")
    return "\n".join(lines)


def short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
