"""Small jobs, and real ranks: forked processes that meet over gloo on a free loopback port."""

from __future__ import annotations

import multiprocessing
import os
import random
import socket
import traceback
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from training.config.job import Job, load

RANK_SECONDS = 240  # of a loaded machine
PORTS = range(10_000, 32_000)  # below those that the kernel gives out by itself (ip_local_port_range)
SMALL = """
steps = 12
log_every = 1
tensorboard = false
[model]
kind = "cnn"
width = 4
[data]
kind = "synthetic"
global_batch = 24
samples = 240
held_out = 40
image_size = 16
channels = 1
[optimizer]
kind = "adamw"
lr = 0.002
"""


def get_ready_to_fork() -> None:
    """Ranks inherit no pool of threads (equal bits need equal counts), but what every way to train imports."""
    torch.set_num_threads(1)
    for name in ("torch._dynamo", "training.parallel.fsdp", "training.parallel.pipeline", "training.parallel.tensor"):
        import_module(name)


def small_job(folder: Path, out: str, *overrides: str) -> Job:
    """A job of seconds with overrides, its results in `folder/out`."""
    path = folder / "small.toml"
    path.write_text(SMALL)
    return load(path, [f"out={folder / out}", *overrides])


def on_ranks(world: int, work: Callable[..., Any], *args: Any) -> list[Any]:
    """What `work(*args)` returns on each of `world` ranks; fails with a rank's traceback where one raises."""
    port = free_ports(1)[0]
    context = multiprocessing.get_context("fork")
    ends, processes = [], []
    for rank in range(world):
        mine, theirs = context.Pipe()
        process = context.Process(target=rank_main, args=(rank, world, port, theirs, work, args))
        process.start()
        theirs.close()
        ends.append(mine)
        processes.append(process)
    try:
        return [answer(end) for end in ends]
    finally:
        for process in processes:
            process.join(5)
            process.kill()


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on, and that no other test's connection is given before they are used."""
    return list(islice(filter(free, random.SystemRandom().sample(PORTS, 1000)), count))


def free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def answer(end: Connection) -> Any:
    if not end.poll(RANK_SECONDS):
        pytest.fail(f"a rank said nothing for {RANK_SECONDS} s")
    kind, value = end.recv()
    if kind == "error":
        pytest.fail(value)
    return value


def rank_main(
    rank: int, world: int, port: int, end: Connection, work: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    try:
        end.send(("value", work(*args)))
    except BaseException:
        end.send(("error", traceback.format_exc()))
