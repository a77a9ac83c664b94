"""`python -m training launch` and `python -m training store`: one job on this node's share of the ranks.

    launch JOB [--set k=v]… [--nproc N] [--nnodes MIN[:MAX]] [--store HOST:PORT] [--store-key FILE] [--attached]
        [--events]
    store --bind ADDRESS [--port N] [--store-key FILE]

The launcher is torch's elastic agent with the settings that survive: it validates the job before anything starts,
starts the ranks, starts them again from the newest checkpoint when one of them or a node is lost or a node joins, and
ends them, with a checkpoint, when it is asked to. Exit codes: 0 finished, 2 wrong job file or usage, 75 stopped with a
durable checkpoint (start it again to go on), 1 anything else. What it says goes to standard error, what rank 0 says to
standard output.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from training.elastic.deadline import SHUTDOWN_SECONDS
from training.elastic.exit_codes import EXIT_BAD_JOB, EXIT_PREEMPTED, LaunchExitError, leave, say
from training.elastic.rendezvous.endpoint import Endpoint, Nodes
from training.elastic.rendezvous.errors import StoreAddressError, StoreKeyError

SHARED_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
KEY_HELP = "key of the store, `-`: first line of standard input (default: GPUFLEET_STORE_KEY, or a file of this user)"


def main(argv: Sequence[str]) -> NoReturn:
    """Run `launch …` or `store …`; leaves the process with the exit code, and one clear line when it is not 0."""
    args = arguments(argv)
    try:
        if args.command == "store":
            from training.elastic.rendezvous.server import serve  # torch: a wrong argument does not wait for it

            code = serve(args.bind, args.port, args.store_key)
        else:
            code = launch(args)
    except LaunchExitError as end:
        say(end.message)
        code = end.exit_code
    except (StoreKeyError, StoreAddressError) as error:
        say(str(error))
        code = EXIT_BAD_JOB
    leave(code)


def launch(args: argparse.Namespace) -> int:
    """Validate the job, then run the elastic agent of this node until the job finished; raises `LaunchExitError` where
    it ended otherwise."""
    from training.config.job import JobError, load

    own_the_restart_store()
    if args.nnodes.most > 1 and args.store is None:
        raise LaunchExitError(
            EXIT_BAD_JOB, "--nnodes above 1 needs --store HOST:PORT (`python -m training store` serves one)"
        )
    try:
        job = load(args.job, args.set)
    except JobError as error:
        raise LaunchExitError(EXIT_BAD_JOB, str(error)) from error
    if (switch := job.out / "STOP").exists():
        raise LaunchExitError(EXIT_PREEMPTED, f"{switch} keeps this job stopped: remove it to go on")

    from training.elastic.rendezvous.key import store_key
    from training.elastic.request import Request

    key = store_key(args.store_key, make=False) if args.store else None
    with Request(attached=args.attached) as request:  # requests are heard before torch is imported
        from training.elastic.supervise import Run, supervise

        run = Run(name=job.name, out=job.out, hang_seconds=job.health.hang_seconds)
        return supervise(run, worker_command(args), args, request, key)


def worker_command(args: argparse.Namespace) -> list[str]:
    """The arguments of `python` for one rank: `training run` under the wrapper that dies with this process."""
    overrides = [part for override in args.set for part in ("--set", override)]
    events = ["--events"] if args.events else []
    return ["-m", "training.elastic.worker", str(os.getpid()), "run", args.job, *overrides, *events]


def own_the_restart_store() -> None:
    """Have torch open no store that all rounds share, to which anybody can connect: with it a restart reads the
    addresses of dead ranks and hangs, and a node that joins late ends the job (torch 2.13 to 2.15: `next_rendezvous` in
    dynamic_rendezvous.py)."""
    if os.environ.setdefault(SHARED_STORE, "1") != "1":
        message = f"{SHARED_STORE}={os.environ[SHARED_STORE]} makes restarts hang: unset it, the launcher sets it to 1"
        raise LaunchExitError(EXIT_BAD_JOB, message)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse; a wrong argument exits 2 with argparse's own line."""
    parser = argparse.ArgumentParser(prog="python -m training", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)

    job = commands.add_parser("launch", help="run a job on this node", allow_abbrev=False)
    job.add_argument("job", metavar="JOB", help="a job file, or the name of one in training/jobs")
    job.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a key of the job file")
    job.add_argument("--nproc", type=positive, metavar="N", help="ranks on this node (default: its GPUs, or 1)")
    job.add_argument(
        "--nnodes", type=Nodes.parse, default=Nodes(1, 1), metavar="MIN[:MAX]", help="nodes of the job (1)"
    )
    job.add_argument("--store", type=Endpoint.parse, metavar="HOST:PORT", help="rendezvous store outside the job")
    job.add_argument("--store-key", metavar="FILE", help=KEY_HELP)
    job.add_argument("--attached", action="store_true", help="stop, with a checkpoint, when standard input closes")
    job.add_argument("--events", action="store_true", help="rank 0 prints one JSON object a line")
    job.add_argument("--shutdown-timeout", type=positive, default=SHUTDOWN_SECONDS, metavar="SECONDS",
                     help="time to save when asked to stop (%(default)s)")  # fmt: skip

    store = commands.add_parser("store", help="serve the rendezvous store outside the job", allow_abbrev=False)
    store.add_argument(
        "--bind", required=True, metavar="ADDRESS", help="the address the nodes reach; only it is served"
    )
    store.add_argument("--port", type=int, default=0, metavar="N", help="0 takes a free one (default)")
    store.add_argument("--store-key", metavar="FILE", help=f"{KEY_HELP}; created where it is missing")
    return parser.parse_args(argv)


def positive(text: str) -> int:
    """A whole number above 0, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
