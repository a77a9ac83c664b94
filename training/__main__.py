"""The training command: run, launch, digest, store, bench, fetch, pack, search, watch."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

FINISHED, FAULT, WRONG_JOB, STOPPED = 0, 1, 2, 75
ELSEWHERE = {
    "launch": "training.elastic.launch",
    "store": "training.elastic.launch",
    "bench": "training.bench",
    "fetch": "training.data.download",
    "pack": "training.data.pack",
    "search": "training.search",
    "watch": "training.metrics.watch",
}


def main(argv: list[str]) -> int:
    """Runs a command line; returns 0 finished, 1 fault, 2 wrong job or usage, 75 stopped with a durable checkpoint."""
    parser = command_line()
    if not argv:
        parser.print_help()
        return FINISHED
    if argv[0] in ELSEWHERE:  # they parse the rest themselves
        return import_module(ELSEWHERE[argv[0]]).main(argv)
    args = parser.parse_args(argv)
    return run(args) if args.command == "run" else digest(args.checkpoint)


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    runs = commands.add_parser("run", help="train in this process: alone, or as one rank under torchrun's environment")
    runs.add_argument("job", metavar="JOB", help="a job file, or the name of one in training/jobs")
    runs.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="set any key of the job file")
    runs.add_argument("--events", action="store_true", help="one JSON object a line instead of lines for people")
    digests = commands.add_parser("digest", help="verify a checkpoint and print the sha256 over its tensors")
    digests.add_argument("checkpoint", metavar="CHECKPOINT", type=Path)
    commands.add_parser("launch", help="run a job on this node's ranks, restarted after a crash", add_help=False)
    commands.add_parser("store", help="serve the rendezvous store of a job's nodes", add_help=False)
    commands.add_parser("bench", help="benchmarks against baselines", add_help=False)
    commands.add_parser("fetch", help="download a named data set and verify its checksum", add_help=False)
    commands.add_parser("pack", help="write a job's data set as arrays that are memory-mapped", add_help=False)
    commands.add_parser("search", help="hyper-parameter search with Optuna", add_help=False)
    commands.add_parser("watch", help="follow a run on the terminal, from its files", add_help=False)
    return parser


def run(args: argparse.Namespace) -> int:
    """Trains; the job file is checked before torch is loaded, so a mistake is reported at once."""
    from training.config.job import JobError, load
    from training.elastic.stop import Stop

    try:
        job = load(args.job, args.set)
    except JobError as error:
        return fault(error, WRONG_JOB)
    stop = Stop(out=job.out)
    from torch import OutOfMemoryError

    from training.data.images import DataError
    from training.loop import train
    from training.metrics.divergence import TrainingDivergedError
    from training.metrics.events import Events, Lines

    try:
        result = train(job, report=Events() if args.events else Lines(), stop=stop)
    except JobError as error:
        return fault(error, WRONG_JOB)
    except OutOfMemoryError as error:
        return fault(job.too_large(". ".join(str(error).split(". ")[:2])), FAULT)
    except (DataError, TrainingDivergedError, OSError) as error:
        return fault(error, FAULT)
    return FINISHED if result.finished else STOPPED


def digest(checkpoint: Path) -> int:
    from training.checkpoint.digest import of_folder
    from training.checkpoint.store import CorruptCheckpointError

    try:
        print(of_folder(checkpoint))
    except CorruptCheckpointError as error:
        return fault(f"{checkpoint}: {error}", FAULT)
    except OSError as error:
        return fault(error, FAULT)
    return FINISHED


def fault(error: object, code: int) -> int:
    """Prints what is wrong. Every rank does: a bad file may be in one rank's share only, a full disk on one node."""
    print(error, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
