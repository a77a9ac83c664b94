"""Deployments under fire: the engine, the provider, `gpufleet` itself or all of it killed with -9 at random moments.

However it ends, the next `up` must finish the work without making anything twice, and `down` must leave nothing.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import alicloud_life  # pyright: ignore[reportMissingImports]: conftest.py finds it
import aws_life  # pyright: ignore[reportMissingImports]: conftest.py finds it
import pytest
from cloud_life import Life  # pyright: ignore[reportMissingImports]: conftest.py finds it
from engine_runner import EngineRunner  # pyright: ignore[reportMissingImports]: conftest.py finds it

REPOSITORY = Path(__file__).resolve().parents[2]
SEEDS = range(100, 130)  # a kill each, every third time two
SLOW = "delay=0.1:*"  # each creation takes so long, as none at a cloud is faster: what kills hit
LARGE_EVERY = 5  # the other stacks are on the first one, which takes half as long
VICTIMS = ("engine", "provider", "gpufleet", "all")


@dataclass(frozen=True)
class Campaign:
    """Kills on one cloud. life: a shipped stack under another name. stacks: each with its number of resources.

    provider: what its command line holds. faults: the variable by which it is made slow.
    """

    life: Callable[[EngineRunner, str, str], AbstractContextManager[Life]]
    stacks: Mapping[str, int]
    provider: bytes
    faults: str

    def survive(self, project: EngineRunner, seed: int) -> str:
        """One kill, or two; returns its line of the table."""
        chance, began = random.Random(seed), time.monotonic()
        shipped, victim = self._stack(seed), VICTIMS[seed % len(VICTIMS)]
        with self.life(project, shipped, f"kill-{seed}") as one:
            made = [self.killed_up(one, victim, chance.randrange(self.stacks[shipped]), chance)]
            if seed % 3 == 0:  # the repair is not safe either
                made.append(self.killed_up(one, chance.choice(VICTIMS), made[0] + chance.randrange(20), chance))
            first = one.up()
            assert (one.duplicates(), one.orphans(), one.orphaned()) == ([], [], [])
            one.pulumi("preview", "--refresh", "--expect-no-changes", "--stack", one.stack)
            one("down", "--yes")
            assert one.alive() == []
        adopted = first["recover"].split()[0]
        return (
            f"{seed:>3}  {shipped:<12}  {victim:<8}  {' and '.join(map(str, made)):<9}  {adopted:>7}  "
            f"{time.monotonic() - began:>5.0f}"
        )

    def _stack(self, seed: int) -> str:
        turn, others = divmod(seed, LARGE_EVERY)
        small, *large = self.stacks
        return small if others else large[turn % len(large)]

    def killed_up(self, one: Life, victim: str, at: int, chance: random.Random) -> int:
        """Starts `up`, kills its victim once so many resources exist and a moment has passed; how many exist then."""
        running = one.start("up", "--yes", "--no-wait", **{self.faults: SLOW})
        while running.poll() is None and len(one.alive()) < at:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        for pid in self._pids(victim, running.pid):
            with suppress(ProcessLookupError):
                (os.kill if pid > 0 else os.killpg)(abs(pid), signal.SIGKILL)
        running.communicate()
        return len(one.alive())

    def _pids(self, victim: str, leader: int) -> list[int]:
        match victim:
            case "engine":
                return [pid for pid in processes(leader, b"/pulumi\0up\0") if pid != leader]
            case "provider":
                return processes(leader, self.provider)
            case "gpufleet":
                return [-leader]
            case _:
                return processes(leader, b"")


@pytest.fixture
def project(tmp_path: Path) -> EngineRunner:
    return EngineRunner.on_a_project(tmp_path)


def processes(leader: int, name: bytes) -> list[int]:
    """What a command has started, by its parents, with this in its command line; empty: all of it, itself too."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    ours = {leader}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    found = []
    for pid in ours:
        with suppress(OSError):
            if name in (Path(f"/proc/{pid}/cmdline").read_bytes()):
                found.append(pid)
    return found


HEAD = "     stack         killed    with made  adopted  seconds   0 duplicates, 0 orphans, 0 left after down"


@pytest.fixture
def table(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def show(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)

    return show


CAMPAIGNS = {  # the numbers are of resources
    "aws": Campaign(
        life=aws_life.life,
        stacks={"dev-g5": 37, "a100-spot": 65, "inference-g6": 59, "eks-a100": 96, "a100-prod": 61},
        provider=b"aws_cloud.provider",
        faults="AWS_CLOUD_FAULTS",
    ),
    "alicloud": Campaign(
        life=alicloud_life.life,
        stacks={"aliyun-scc": 49, "aliyun-spot": 55, "aliyun-a100": 54},
        provider=b"alicloud_cloud.provider",
        faults="ALICLOUD_CLOUD_FAULTS",
    ),
}


@pytest.mark.drill
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cloud", CAMPAIGNS)
def test_a_killed_deployment_leaves_neither_duplicates_nor_orphans(
    project: EngineRunner, table: Callable[[str], None], cloud: str, seed: int
) -> None:
    if seed == SEEDS[0]:
        table(HEAD)
    table(CAMPAIGNS[cloud].survive(project, seed))
