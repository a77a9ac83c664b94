"""A job under fire: ranks and whole nodes killed with -9 at random moments; the weights must not show it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from launched import Launched, Launchers, launchers  # pyright: ignore[reportMissingImports]: conftest.py finds it

from training.config.job import load
from training.loop import train

pytestmark = pytest.mark.drill

KILLS = 16
STEPS = 1500
INTERVAL = 5
NODE_LOSSES = 4
NODE_STEPS = 2000  # more than are done until the last of them is lost
START_UP_SECONDS = 3  # imports, rendezvous, load


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launchers]:
    with launchers(tmp_path) as starting:
        yield starting


def undisturbed(launch: Launchers, steps: int) -> str:
    torch.set_num_threads(1)
    digest = train(load(launch.job("undisturbed", steps), [])).digest
    assert digest is not None
    return digest


def new_steps(job: Launched, count: int) -> None:
    """Waits until the job is so many steps past the newest checkpoint of now."""
    start = max(job.checkpoints(), default=0)
    job.until(lambda: job.steps() and job.steps()[-1] >= start + count)


@contextmanager
def waiting(job: Launched) -> Iterator[None]:
    """The job's rank does no step until it is asked to leave, since another node has come: alone it is fast, and would
    be at its end before."""
    (rank,) = job.ranks()
    os.kill(rank, signal.SIGSTOP)
    yield
    job.until(lambda: has_stop_request(rank))
    os.kill(rank, signal.SIGCONT)


def has_stop_request(pid: int) -> bool:
    """Whether SIGTERM waits for a process that is stopped."""
    status = Path(f"/proc/{pid}/status").read_text()
    (pending,) = [line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:")]
    return bool(int(pending, 16) & 1 << signal.SIGTERM - 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_ranks_killed_at_random_moments_leave_no_trace(launch: Launchers, seed: int) -> None:
    chance = random.Random(seed)
    job = launch("--nproc", "2", out="killed", steps=STEPS, OMP_NUM_THREADS="1")

    for number in range(KILLS):
        if number % 4 == 3:
            job.until(lambda: len(job.ranks()) == 2)
            time.sleep(chance.uniform(0, START_UP_SECONDS))
        else:
            new_steps(job, chance.randrange(1, 4 * INTERVAL))
        job.until(lambda: len(job.ranks()) == 2)
        ranks = job.ranks()
        os.kill(chance.choice(ranks), signal.SIGKILL)
        job.until(lambda before=ranks: set(job.ranks()).isdisjoint(before))
    code, said = job.end()

    assert code == 0, said
    assert said.count("was killed by SIGKILL; restarting") == KILLS
    assert job.steps() == list(range(1, STEPS + 1))
    assert job.result()["digest"] == undisturbed(launch, STEPS)
    assert job.result()["lost_steps"] <= KILLS * (2 * INTERVAL - 1)  # the newest save may have been under way


def test_either_node_may_be_lost_and_replaced(launch: Launchers) -> None:
    server, where = launch.store()
    options = ("--nproc", "1", "--nnodes", "1:2", "--store", where)

    def node() -> Launched:
        return launch(*options, out="nodes", steps=NODE_STEPS, OMP_NUM_THREADS="1")

    nodes = [node(), node()]
    for number in range(NODE_LOSSES):
        for job in nodes:
            job.until(job.ranks)
        new_steps(nodes[0], 2 * INTERVAL)
        lost = nodes.pop(number % 2)
        lost.process.kill()  # its rank goes with it
        new_steps(nodes[0], 2 * INTERVAL)
        with waiting(nodes[0]):
            nodes.append(node())

    assert [job.end()[0] for job in nodes] == [0, 0]
    assert nodes[0].steps() == list(range(1, NODE_STEPS + 1))
    assert nodes[0].result()["digest"] == undisturbed(launch, NODE_STEPS)
    server.kill()


def test_a_node_that_joins_late_trains_with_the_first_and_may_leave_again(launch: Launchers) -> None:
    _, where = launch.store()
    options = ("--nproc", "1", "--nnodes", "1:2", "--store", where)
    first = launch(*options, out="joined", steps=100_000)
    first.until(first.steps)

    second = launch(*options, out="joined", steps=100_000)
    second.until(second.ranks)
    second.ask(signal.SIGTERM)
    assert second.end()[0] == 75
    together = second.result()

    left_at = together["steps"]
    first.until(lambda: first.steps()[-1] > left_at)
    first.ask(signal.SIGTERM)
    code, said = first.end()

    assert (together["world_size"], first.result()["world_size"]) == (2, 1)
    assert code == 75
    assert f"another node left or joined; restarting at step {left_at}" in said
    assert first.result()["lost_steps"] == 0
