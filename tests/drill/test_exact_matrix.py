"""Every way to train, stopped where chance says and resumed: the weights must be those of a run that went through."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from forked import get_ready_to_fork, on_ranks, small_job  # pyright: ignore[reportMissingImports]: conftest.py finds it
from trained import After  # pyright: ignore[reportMissingImports]

from training.config.job import Job
from training.loop import train
from training.metrics.result import Result
from training.parallel import consensus

pytestmark = pytest.mark.drill

WORLDS = (1, 2, 3, 4)
WORKERS = (0, 2)
PRECISIONS = ("fp32", "bf16")
OPTIMIZERS = ("sgd", "adamw")
WAYS = {
    "plain": (),
    "accumulation and BatchNorm": ("data.micro_batch=2", "model.norm=batch"),
    "PowerSGD": ("parallel.compress=powersgd", "parallel.rank=1"),
    "bf16 gradients": ("parallel.compress=bf16",),
    "shards": ("parallel.shards=5",),
    "local SGD": ("parallel={kind='localsgd', every=2, after=2}",),
    "EMA and clipping": ("optimizer.ema=0.9", "optimizer.clip_norm=0.5"),
}
STEPS = 12


@pytest.fixture(autouse=True)
def _every_step_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    get_ready_to_fork()
    monkeypatch.setattr(consensus, "VOTE_SECONDS", 0.0)


def stopped_after(job: Job, questions: int) -> Result:
    return train(job, stop=After(questions))


def digest_of(results: list[Result]) -> str:
    (digest,) = {result.digest for result in results}
    assert digest is not None  # a stopped run has none: two of them would be alike
    return digest


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_resume_at_any_step_changes_no_bit(tmp_path: Path, world: int, way: str) -> None:
    chance = random.Random(f"{world} {way}")
    for workers, compute, optimizer in itertools.product(WORKERS, PRECISIONS, OPTIMIZERS):
        keys = (f"data.workers={workers}", f"precision.compute={compute}", f"optimizer.kind={optimizer}", *WAYS[way])
        name = f"{workers}-{compute}-{optimizer}"
        straight, job = (small_job(tmp_path, f"{name}-{which}", *keys) for which in ("straight", "stopped"))
        wanted = digest_of(on_ranks(world, train, straight))

        stop = chance.randrange(1, STEPS - 2)
        on_ranks(world, stopped_after, job, stop)
        on_ranks(world, stopped_after, job, chance.randrange(1, 3))

        assert digest_of(on_ranks(world, train, job)) == wanted, f"{name}, stopped at {stop}"


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("seed", range(3))
def test_4_3_2_4_ranks_in_turn_give_the_bits_of_4(tmp_path: Path, norm: str, seed: int) -> None:
    keys = ("parallel.shards=4", f"model.norm={norm}", f"seed={seed}", "data.micro_batch=2")
    fixed, elastic = (small_job(tmp_path, name, *keys) for name in ("fixed", "elastic"))
    wanted = digest_of(on_ranks(4, train, fixed))

    for world in (4, 3, 2):
        on_ranks(world, stopped_after, elastic, 3)

    assert digest_of(on_ranks(4, train, elastic)) == wanted
