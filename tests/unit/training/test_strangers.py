"""Somebody who reaches a job's sockets, and knows its protocols, gets neither in nor in the way."""

from __future__ import annotations

import os
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

STEPS = 200
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


def digest_of_undisturbed(launch: Launchers) -> str | None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return train(load(launch.job("undisturbed", STEPS), [])).digest
    finally:
        torch.set_num_threads(threads)


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
def strangers(marker: Path, addresses: Sequence[str], login: int, before: Sequence[str] = ()) -> Iterator[list[int]]:
    """200 attempts, what they got held open meanwhile: how many were connected, and how many got an answer."""
    script = Path(__file__).with_name("stranger.py")
    command = [*before, sys.executable, str(script), str(login), str(marker), *addresses]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield [int(word) for word in process.stdout.readline().split()]


def goes_through(job: Launched, undisturbed: str | None, marker: Path) -> None:
    code, said = job.end()
    assert not marker.exists()
    assert (code, said) == (0, "")
    assert job.result()["digest"] == undisturbed
    assert job.result()["restarts"] == 0


@as_root
def test_no_login_on_the_computer_gets_into_a_job_or_in_its_way(launch: Launchers, marker: Path) -> None:
    undisturbed = digest_of_undisturbed(launch)
    job = launch("--nproc", "2", steps=STEPS, OMP_NUM_THREADS="1")
    job.until(job.steps)

    everywhere = [at for process in (job.process.pid, *job.ranks()) for at in listening(process)]
    with strangers(marker, everywhere, NOBODY) as (made, answered):
        goes_through(job, undisturbed, marker)

    print(f"strangers on loopback: {made} of {ATTEMPTS} connected, {answered} got an answer")
    assert len(everywhere) >= 3  # the launcher's, and gloo's of both ranks
    assert made > 0
    assert answered == 0


@as_root
def test_nobody_on_the_network_gets_into_a_job_or_in_its_way(launch: Launchers, marker: Path) -> None:
    undisturbed = digest_of_undisturbed(launch)
    with network("10.213.7.1", "10.213.7.2") as there:
        server, where = launch.store("10.213.7.1")
        job = launch("--nproc", "2", "--store", where, steps=STEPS, OMP_NUM_THREADS="1")
        job.until(job.steps)

        everywhere = [
            at
            for process in (server.pid, job.process.pid, *job.ranks())
            for at in listening(process)
            if not at.startswith("127.")
        ]
        with strangers(marker, everywhere, 0, there) as (made, answered):
            goes_through(job, undisturbed, marker)

    print(f"strangers on the network: {made} of {ATTEMPTS} connected, {answered} got an answer")
    assert len(everywhere) >= 3
    assert made > 0
    assert answered == 0


@contextmanager
def network(here: str, there: str) -> Iterator[list[str]]:
    """A second computer, as far as addresses go: what to put before a command that runs there."""
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
        yield inside
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)
