"""Somebody who reaches a job's sockets, and knows its protocols, gets neither in nor in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from launched import Launched, Launchers, launchers
from stranger import ATTEMPTS

from training.config.job import load
from training.loop import train

STEPS = 300
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another login")


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launchers]:
    with launchers(tmp_path) as starting:
        yield starting


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Which only code that was planted makes."""
    return tmp_path / "was here"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of a run that nobody has come near."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with launchers(tmp_path_factory.mktemp("undisturbed")) as starting:
        digest = train(load(starting.job("undisturbed", STEPS), [])).digest
    torch.set_num_threads(threads)
    assert digest is not None
    return digest


def listening(process: int) -> list[str]:
    """ADDRESS:PORT of every socket that a process listens on for TCP, by the kernel's own tables."""
    held = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            held.add(str(entry.readlink()))
        except FileNotFoundError:
            continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in held:
                address, _, port = fields[1].partition(":")
                host = ".".join(str(byte) for byte in reversed(bytes.fromhex(address[-8:])))
                found.append(f"{'127.0.0.1' if host == '0.0.0.0' else host}:{int(port, 16)}")
    return found


@contextmanager
def strangers(marker: Path, login: int, before: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """Somebody who waits to be told where to connect 200 times, and holds what that gives until the end."""
    command = [*before, sys.executable, str(Path(__file__).with_name("stranger.py")), str(login), str(marker)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def met(
    stranger: subprocess.Popen[str], job: Launched, *others: int, without: str = "nowhere"
) -> tuple[list[str], int, int]:
    """Where the job listens, how many attempts of the stranger there were connected, and how many got an answer.

    The ranks stand still from the job's first step until the stranger connects: it would come too late to a fast job.
    others: processes that belong to the job, too. without: how addresses begin that the stranger does not reach.
    """
    assert stranger.stdin is not None
    assert stranger.stdout is not None
    job.until(job.steps)
    ranks = job.ranks()
    for rank in ranks:
        os.kill(rank, signal.SIGSTOP)
    everywhere = [at for process in (*others, job.process.pid, *ranks) for at in listening(process)]
    reached = [at for at in everywhere if not at.startswith(without)]
    stranger.stdin.write(" ".join(reached) + "\n")
    stranger.stdin.flush()
    assert stranger.stdout.readline() == "connecting\n"
    for rank in ranks:
        os.kill(rank, signal.SIGCONT)
    made, answered = map(int, stranger.stdout.readline().split())
    return reached, made, answered


def goes_through(job: Launched, undisturbed: str, marker: Path) -> None:
    code, said = job.end()
    assert not marker.exists()
    assert (code, said) == (0, "")
    assert job.result()["digest"] == undisturbed
    assert job.result()["restarts"] == 0


@as_root
def test_no_login_on_the_computer_gets_into_a_job_or_in_its_way(
    launch: Launchers, undisturbed: str, marker: Path
) -> None:
    with strangers(marker, NOBODY) as stranger:
        job = launch("--nproc", "2", steps=STEPS, OMP_NUM_THREADS="1")

        everywhere, made, answered = met(stranger, job)
        goes_through(job, undisturbed, marker)

    print(f"strangers on loopback: {made} of {ATTEMPTS} connected, {answered} got an answer")
    assert len(everywhere) >= 3  # the launcher's, and gloo's of both ranks
    assert made > 0
    assert answered == 0


@as_root
def test_nobody_on_the_network_gets_into_a_job_or_in_its_way(launch: Launchers, undisturbed: str, marker: Path) -> None:
    with network() as (here, there), strangers(marker, 0, there) as stranger:
        server, where = launch.store(here)
        job = launch("--nproc", "2", "--store", where, steps=STEPS, OMP_NUM_THREADS="1")

        everywhere, made, answered = met(stranger, job, server.pid, without="127.")
        goes_through(job, undisturbed, marker)

    print(f"strangers on the network: {made} of {ATTEMPTS} connected, {answered} got an answer")
    assert len(everywhere) >= 3
    assert made > 0
    assert answered == 0


@contextmanager
def network() -> Iterator[tuple[str, list[str]]]:
    """A second computer, as far as addresses go: this one's address for it, and what to put before a command that runs
    there."""
    around = f"10.212.{os.getpid() >> 6 & 255}.{{}}"  # another process of these tests has other addresses
    here, there = (around.format((os.getpid() & 63) * 4 + number) for number in (1, 2))
    name = f"gpufleet-{os.getpid()}"
    link = [f"gf{os.getpid()}a", f"gf{os.getpid()}b"]
    inside = ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for command in (
            ["ip", "link", "add", link[0], "type", "veth", "peer", "name", link[1], "netns", name],
            ["ip", "address", "add", f"{here}/30", "dev", link[0]],
            ["ip", "link", "set", link[0], "up"],
            [*inside, "ip", "address", "add", f"{there}/30", "dev", link[1]],
            [*inside, "ip", "link", "set", link[1], "up"],
        ):
            subprocess.run(command, check=True)
        yield here, inside
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)
