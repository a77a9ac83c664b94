"""From a valid job to its end: the store, the rendezvous, the agent of this node."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousError,
    RendezvousParameters,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from training.config import Job
from training.interrupt import SHUTDOWN, FileSwitch
from training.launch.agent import Agent
from training.launch.ended import EXIT_FAILED, Ended
from training.launch.failure import Logs, own_folder
from training.launch.node import Endpoint, address_towards, settle_environment
from training.launch.progress import Progress
from training.launch.relay import Relay
from training.launch.request import Request
from training.launch.store import open_store

# Defaults notice a lost node after 43 to 52 s; these after 4 to 10 s. The nodes' clocks must agree within 3 s (NTP).
RENDEZVOUS = {"is_host": 0, "last_call_timeout": 1, "keep_alive_interval": 1, "keep_alive_max_attempt": 3}
LOOPBACK = "127.0.0.1"
JOIN_SECONDS = 600
MONITOR_SECONDS = 0.1
RESTARTS = 1_000_000  # no limit of ours: a job ends after rounds without a step, not after restarts


def supervise(job: Job, command: Sequence[str], asked: argparse.Namespace, request: Request) -> int:
    """Run the ranks of this node until the job finished (0); raises `Ended` when it ended otherwise."""
    with _store(asked.store) as store, _told_plainly(store, asked.nnodes.least):
        address = _own_address(store)
        nproc = asked.nproc or torch.cuda.device_count() or 1
        settle_environment(address, nproc * (asked.nnodes.most if address == LOOPBACK else 1))

        folder = own_folder(job.out / "logs")
        _log_torch_to(folder / "agent.log")
        os.environ[SHUTDOWN] = str(asked.shutdown_timeout)
        os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = (
            "SIGUSR2"  # torch takes its signals anew each round: SIGTERM is ours
        )
        spec = WorkerSpec(
            role="rank",
            local_world_size=nproc,
            rdzv_handler=get_rendezvous_handler(_rendezvous(job.name, store, asked, address)),
            entrypoint=sys.executable,
            args=tuple(command),
            max_restarts=RESTARTS,
            monitor_interval=MONITOR_SECONDS,
            local_addr=address,
        )
        agent = Agent(
            spec,
            Logs(folder),
            request=request,
            sources=(FileSwitch(job.out / "STOP"),),
            progress=Progress(job.out),
            shutdown_seconds=asked.shutdown_timeout,
            hang_seconds=job.health.hang_seconds,
        )
        with Relay():
            result = agent.run()
    if result is None:
        raise Ended(EXIT_FAILED, f"another program closed the job {job.name} at {store}")
    return 0


@contextmanager
def _store(outside: Endpoint | None) -> Iterator[Endpoint]:
    """The store outside the job, or one in this process for a job of one node."""
    if outside is not None:
        yield outside
        return
    own = open_store(LOOPBACK)
    yield Endpoint(LOOPBACK, own.port)


@contextmanager
def _told_plainly(store: Endpoint, least: int) -> Iterator[None]:
    """Turn what can go wrong between the nodes, or with the run's folder, into one line each."""
    try:
        yield
    except RendezvousConnectionError as error:
        said = f"no rendezvous store answers at {store} (`python -m training store` serves one)"
        raise Ended(EXIT_FAILED, said) from error
    except RendezvousTimeoutError as error:
        raise Ended(EXIT_FAILED, f"fewer than {least} nodes came to {store} within {JOIN_SECONDS} s") from error
    except RendezvousError as error:
        raise Ended(EXIT_FAILED, f"the rendezvous at {store} failed: {error}") from error
    except OSError as error:
        raise Ended(EXIT_FAILED, str(error)) from error


def _rendezvous(name: str, store: Endpoint, asked: argparse.Namespace, address: str) -> RendezvousParameters:
    return RendezvousParameters(
        backend="c10d",
        endpoint=str(store),
        run_id=name,
        min_nodes=asked.nnodes.least,
        max_nodes=asked.nnodes.most,
        local_addr=address,
        join_timeout=JOIN_SECONDS,
        **RENDEZVOUS,
    )


def _own_address(store: Endpoint) -> str:
    try:
        return address_towards(store.host)
    except OSError as error:
        raise Ended(EXIT_FAILED, f"no way to the store {store}: {error.strerror}") from error


def _log_torch_to(file: Path) -> None:
    """The agent's own warnings go beside the ranks' logs: what a person has to know, `say` says."""
    logger = logging.getLogger("torch.distributed.elastic")
    logger.addHandler(logging.FileHandler(file))
    logger.propagate = False
