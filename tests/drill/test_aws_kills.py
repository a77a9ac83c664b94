"""Deployments under fire: the engine, the provider, `gpufleet` itself or all of it killed with -9 at random moments.

However it ends, the next `up` must finish the work without making anything twice, and `down` must leave nothing.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from aws_life import REPOSITORY, life  # pyright: ignore[reportMissingImports]: conftest.py finds it
from cloud_life import Life  # pyright: ignore[reportMissingImports]
from engine_runner import EngineRunner  # pyright: ignore[reportMissingImports]: conftest.py finds it

from ops import engine
from ops.failure import Failure
from ops.project import Project

KILLS = 30
SLOW = "delay=0.1:*"  # each creation takes so long, as none at AWS is faster: what kills hit
STACKS = {"dev-g5": 37, "a100-spot": 65, "inference-g6": 59, "eks-a100": 96, "a100-prod": 61}  # and their resources
SMALL, *LARGE = STACKS
LARGE_EVERY = 5  # the others are on the small one, which takes half as long


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineRunner:
    for name in [name for name in os.environ if name.startswith("PULUMI_")]:
        monkeypatch.delenv(name)
    try:
        found = engine.binary(Project(REPOSITORY))
    except Failure as missing:
        pytest.skip(str(missing))
    (tmp_path / "stacks").mkdir()
    (tmp_path / ".gpufleet" / "pulumi").mkdir(parents=True)
    (tmp_path / ".gpufleet" / "engine").write_text(str(found))
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    for name in ("infra", ".venv"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    return EngineRunner(root=tmp_path, environment=engine.environment(Project(tmp_path)))


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


VICTIMS: dict[str, Callable[[int], list[int]]] = {
    "engine": lambda pid: [p for p in processes(pid, b"/pulumi\0up\0") if p != pid],
    "provider": lambda pid: processes(pid, b"aws_cloud.provider"),
    "gpufleet": lambda pid: [-pid],
    "all": lambda pid: processes(pid, b""),
}


def killed_up(one: Life, victim: str, at: int, chance: random.Random) -> int:
    """Starts `up`, kills its victim once so many resources exist and a moment has passed; returns how many exist."""
    running = one.start("up", "--yes", "--no-wait", AWS_CLOUD_FAULTS=SLOW)
    while running.poll() is None and len(one.alive()) < at:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.3))
    for pid in VICTIMS[victim](running.pid):
        with suppress(ProcessLookupError):
            (os.kill if pid > 0 else os.killpg)(abs(pid), signal.SIGKILL)
    running.communicate()
    return len(one.alive())


def survive(project: EngineRunner, shipped: str, victim: str, seed: int) -> str:
    """One case; returns its line of the table."""
    chance, began = random.Random(seed), time.monotonic()
    with life(project, shipped, f"kill-{seed}") as one:
        made = [killed_up(one, victim, chance.randrange(STACKS[shipped]), chance)]
        if seed % 3 == 0:  # the repair is not safe either
            made.append(killed_up(one, chance.choice(list(VICTIMS)), made[0] + chance.randrange(20), chance))
        first = one.up()
        assert (one.duplicates(), one.orphans(), one.strays()) == ([], [], [])
        one.pulumi("preview", "--refresh", "--expect-no-changes", "--stack", one.stack)
        one("down", "--yes")
        assert one.alive() == []
    adopted = first["recover"].split()[0]
    return (
        f"{seed:>3}  {shipped:<12}  {victim:<8}  {' and '.join(map(str, made)):<9}  {adopted:>7}  "
        f"{time.monotonic() - began:>5.0f}"
    )


HEAD = "     stack         killed    with made  adopted  seconds   0 duplicates, 0 orphans, 0 left after down"


@pytest.fixture
def table(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def show(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)

    return show


@pytest.mark.drill
@pytest.mark.timeout(7200)
def test_killed_deployments_leave_neither_duplicates_nor_orphans(
    project: EngineRunner, table: Callable[[str], None]
) -> None:
    table(HEAD)
    for seed in range(100, 100 + KILLS):
        turn, small = divmod(seed, LARGE_EVERY)
        shipped = SMALL if small else LARGE[turn % len(LARGE)]
        table(survive(project, shipped, list(VICTIMS)[seed % len(VICTIMS)], seed))
