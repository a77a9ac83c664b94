"""Runs a valid job on this node to its end: store, rendezvous and elastic agent."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
from torch.distributed import Store, TCPStore  # pyright: ignore[reportPrivateImportUsage]: documented there
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousError,
    RendezvousTimeoutError,
)

from training.elastic.agent import Agent
from training.elastic.deadline import SHUTDOWN
from training.elastic.exit_codes import EXIT_FAILED, LaunchExitError
from training.elastic.failures import Logs, own_folder
from training.elastic.notices import FileSwitch
from training.elastic.progress import Progress
from training.elastic.rendezvous.backend import JOIN_SECONDS, Rendezvous
from training.elastic.rendezvous.endpoint import Endpoint
from training.elastic.rendezvous.errors import StoreUnreachableError
from training.elastic.rendezvous.hidden_store import FRONT as LOOPBACK
from training.elastic.rendezvous.hidden_store import HiddenStore
from training.elastic.rendezvous.key import new_key
from training.elastic.rendezvous.server import way_to
from training.elastic.request import Request
from training.elastic.stdout_relay import Relay
from training.elastic.system import address_towards, interface_of

STORE_SECONDS = 60  # for an answer of the store
MONITOR_SECONDS = 0.1
RESTARTS = 1_000_000  # no limit of ours: a job ends after rounds without a step, not after restarts


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a launcher has to know of a job. out: the run's folder. hang_seconds: how long a rank may do nothing."""

    name: str
    out: Path
    hang_seconds: int


def supervise(run: Run, command: Sequence[str], args: argparse.Namespace, request: Request, key: bytes | None) -> int:
    """Run the ranks of this node until the job finished (0); raises `LaunchExitError` when it ended otherwise.

    command: arguments of `python` for one rank. key: of the rendezvous store outside the job, if there is one.
    """
    store = args.store or "this node"
    with _as_launch_errors(store, args.nnodes.least):
        address = _own_address(args.store) if args.store else LOOPBACK
        client, port, key = _store(args.store, key)
        nproc = args.nproc or torch.cuda.device_count() or 1
        set_rank_environment(address, nproc * (args.nnodes.most if address == LOOPBACK else 1))

        folder = own_folder(run.out / "logs")
        _log_torch_to(folder / "agent.log")
        os.environ[SHUTDOWN] = str(args.shutdown_timeout)
        os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = (
            "SIGUSR2"  # torch takes its signals anew each round: SIGTERM is ours
        )
        spec = WorkerSpec(
            role="rank",
            local_world_size=nproc,
            rdzv_handler=Rendezvous(run.name, client, key, args.nnodes.least, args.nnodes.most, address),
            entrypoint=sys.executable,
            args=tuple(command),
            max_restarts=RESTARTS,
            monitor_interval=MONITOR_SECONDS,
            local_addr=address,
            master_addr=LOOPBACK,  # the ranks reach the store as this process does, by a door for this login alone
            master_port=port,
        )
        agent = Agent(
            spec,
            Logs(folder),
            request=request,
            sources=(FileSwitch(run.out / "STOP"),),
            progress=Progress(run.out),
            shutdown_seconds=args.shutdown_timeout,
            hang_seconds=run.hang_seconds,
        )
        with Relay():
            result = agent.run()
    if result is None:
        raise LaunchExitError(EXIT_FAILED, f"another program closed the job {run.name} at {store}")
    return 0


def _store(outside: Endpoint | None, key: bytes | None) -> tuple[Store, int, bytes]:
    """A client of the store outside the job, or a store in this process for a job of one node; the port on loopback
    where this login's processes find it, and its key."""
    if outside is None:
        own = HiddenStore()
        return own.store, own.port, new_key().encode()
    assert key is not None
    port = way_to(outside, key).port
    patience = timedelta(seconds=STORE_SECONDS)
    return TCPStore(LOOPBACK, port, is_master=False, wait_for_workers=False, timeout=patience), port, key


@contextmanager
def _as_launch_errors(store: Endpoint | str, least: int) -> Iterator[None]:
    """Turn what can go wrong between the nodes, or with the run's folder, into one line each."""
    try:
        yield
    except StoreUnreachableError as error:
        raise LaunchExitError(EXIT_FAILED, str(error)) from error
    except RendezvousConnectionError as error:
        raise LaunchExitError(EXIT_FAILED, f"the rendezvous store at {store} is lost") from error
    except RendezvousTimeoutError as error:
        raise LaunchExitError(
            EXIT_FAILED, f"fewer than {least} nodes joined at {store} within {JOIN_SECONDS} s"
        ) from error
    except RendezvousError as error:
        raise LaunchExitError(EXIT_FAILED, f"the rendezvous at {store} failed: {error}") from error
    except OSError as error:
        raise LaunchExitError(EXIT_FAILED, str(error)) from error


def _own_address(store: Endpoint) -> str:
    try:
        return address_towards(store.host)
    except OSError as error:
        raise LaunchExitError(EXIT_FAILED, f"cannot reach the store {store}: {error.strerror}") from error


def _log_torch_to(file: Path) -> None:
    """The agent's own warnings go to a file next to the ranks' logs; `say` prints what people have to know."""
    logger = logging.getLogger("torch.distributed.elastic")
    logger.addHandler(logging.FileHandler(file))
    logger.propagate = False


def threads_per_rank(ranks: int) -> int:
    """Cores of this process's share of the computer over its ranks, at least 1."""
    return max(1, len(os.sched_getaffinity(0)) // ranks)


def set_rank_environment(address: str, ranks_on_this_computer: int) -> None:
    """Set what the ranks inherit; whatever the person set already stays.

    gloo otherwise binds to what the host name resolves to, which on many systems is 127.0.1.1, unreachable for the
    peers.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_per_rank(ranks_on_this_computer)))
    if (card := interface_of(address)) is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", card)
