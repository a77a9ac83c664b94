"""The peers' sides of `bench timm`, `trainer`, `accelerate` and the saves: each a process of the environment that
`make peers` makes.

`python -m training.bench.baselines.NAME JOB KEY=VALUE…` builds the job's own model and data once, prints its
versions, and does a turn of the job's steps for every line that it reads: the answer is its seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version

from training.config.job import Job, load


def serve(runner_of: Callable[[Job], Callable[[], float]], *packages: str) -> None:
    """Answers on standard output; whatever the packages print goes to standard error.

    turn_of: makes what does a turn and returns its seconds.
    """
    answers, sys.stdout = sys.stdout, sys.stderr
    run_round = runner_of(load(sys.argv[1], sys.argv[2:]))
    print(json.dumps({name: version(name) for name in packages}), file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps(run_round()), file=answers, flush=True)
