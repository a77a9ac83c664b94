"""The ways to share a step other than plain DDP: what travels, what is kept, and that a resume changes no bit."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from trained import After, losses

from training.checkpoint.manifest import read_manifest
from training.checkpoint.snapshot import Snapshot
from training.config.job import Job
from training.loop import train
from training.parallel import connect, consensus
from training.parallel.compression import PowerSgd
from training.parallel.ordered_sum import ordered_sum

Ranks = Callable[..., list]


@pytest.fixture
def every_step_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of these jobs takes less than a vote's time: without this a stop would come some steps later."""
    monkeypatch.setattr(consensus, "VOTE_SECONDS", 0.0)


def stopped_after(job: Job, questions: int):
    return train(job, stop=After(questions))


def numbers(rank: int) -> torch.Tensor:
    return torch.randn(1001, generator=torch.Generator().manual_seed(rank))


WANTED = numbers(0) + numbers(1) + numbers(2)


def summed() -> list[list[float]]:
    """A whole tensor, a slice of it, and the whole one sent in bf16, each summed over the ranks."""
    with connect(60):
        mine = numbers(dist.get_rank())
        sums = [ordered_sum(mine.clone(), None), ordered_sum(mine[500:].clone(), None)]
        return [found.tolist() for found in (*sums, ordered_sum(mine.clone(), None, torch.bfloat16))]


def test_a_sum_has_the_bits_of_rank_order_on_every_rank_wherever_it_is_cut(ranks: Ranks):
    answers = ranks(3, summed)

    assert all(answer == answers[0] for answer in answers)
    whole, part, rounded = answers[0]
    assert whole == WANTED.tolist()
    assert part == WANTED[500:].tolist()
    assert 0 < float((torch.tensor(rounded) - WANTED).abs().max()) < 0.05


def sent_gradients() -> tuple[list[float], float]:
    """Rank r's gradient is (r + 1) times a matrix of rank one: how wrong the sum is, and what is left to send."""
    with connect(60) as here:
        model = torch.nn.Linear(30, 20, bias=False)
        way = PowerSgd(model, here, 1, 1, seed=1)
        matrix = torch.outer(torch.arange(20.0), torch.ones(30))
        model.weight.grad = (here.rank + 1) * matrix
        way.reduce(1)
        left = float(torch.stack(list(way.own().values())).abs().max())
        return (model.weight.grad - 6 * matrix).abs().amax(1).tolist(), left


def test_powersgd_sends_a_matrix_of_its_rank_as_it_is(ranks: Ranks):
    for wrong, left in ranks(3, sent_gradients):
        assert max(wrong) < 1e-3
        assert left < 1e-3


def kept_for(layout: torch.memory_format) -> list[list]:
    """A reduced gradient, and what a checkpoint of PowerSGD holds."""
    with connect(60) as here:
        model = torch.nn.Conv2d(8, 12, 3, bias=False).to(memory_format=layout)
        way = PowerSgd(model, here, 1, 2, seed=1)
        drawn = torch.randn(model.weight.shape, generator=torch.Generator().manual_seed(here.rank))
        model.weight.grad = drawn.contiguous(memory_format=layout)
        way.reduce(1)
        kept = [model.weight.grad, *way.own().values(), *way.shared().values()]
        return [tensor.contiguous().tolist() for tensor in kept]


def test_a_checkpoint_of_powersgd_does_not_depend_on_the_layout(ranks: Ranks):
    plain, last = (ranks(2, kept_for, layout)[1] for layout in (torch.contiguous_format, torch.channels_last))

    for one, other in zip(plain, last, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("every_step_votes")
@pytest.mark.parametrize(
    "way",
    [
        ("parallel.compress=powersgd", "parallel.rank=1", "model.norm=batch"),
        ("parallel={kind='localsgd', every=3, after=3}", "optimizer.kind=sgd"),
    ],
)
def test_resumed_ranks_equal_uninterrupted_ones_bit_for_bit(
    small: Callable[..., Job], ranks: Ranks, way: tuple[str, ...]
):
    straight, job = small(*way, out="straight"), small(*way, out="stopped")

    digest = ranks(3, train, straight)[0].digest
    stopped = ranks(3, stopped_after, job, 6)
    resumed = ranks(3, train, job)

    assert {result.steps for result in stopped} == {6}
    assert {result.digest for result in resumed} == {digest}


@pytest.fixture
def late_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a save need not copy at once it copies after the next gradients were reduced."""
    reduced, reduce, begin, complete = threading.Event(), PowerSgd.reduce, Snapshot.begin, Snapshot.complete

    def begun(snapshot: Snapshot, live: dict[str, torch.Tensor]) -> None:
        reduced.clear()
        begin(snapshot, live)

    def reducing(way: PowerSgd, step: int) -> None:
        reduce(way, step)
        reduced.set()

    def late(snapshot: Snapshot) -> dict[str, torch.Tensor]:
        reduced.wait(1)  # none follows the last save
        return complete(snapshot)

    monkeypatch.setattr(Snapshot, "begin", begun)
    monkeypatch.setattr(PowerSgd, "reduce", reducing)
    monkeypatch.setattr(Snapshot, "complete", late)


@pytest.mark.usefixtures("late_writer")
def test_a_save_of_powersgd_holds_its_step_though_the_next_reduction_runs_beside_it(
    small: Callable[..., Job], ranks: Ranks
):
    job = small("parallel.compress=powersgd", "parallel.rank=1", "checkpoint.every_steps=6")
    straight = ranks(2, train, job)[0]
    shutil.rmtree(job.out / "checkpoints" / "step-00000012")

    resumed = ranks(2, train, job)[0]

    assert resumed.lost_steps == 6
    assert resumed.digest == straight.digest


def test_powersgd_keeps_what_each_rank_has_yet_to_send_in_the_checkpoint(small: Callable[..., Job], ranks: Ranks):
    job = small("steps=4", "parallel.compress=powersgd", "parallel.rank=2")

    ranks(2, train, job)
    pieces = read_manifest(job.out / "checkpoints" / "step-00000004").pieces

    alone = {rank: {key for key in pieces[f"rank-{rank}.safetensors"] if key.startswith("rank.")} for rank in (0, 1)}
    assert len(alone[0]) == len(alone[1]) > 0
    assert all(key.startswith("rank.1.powersgd.missed.") for key in pieces["rank-1.safetensors"])
    assert any(key.startswith("extra.powersgd.q.") for key in pieces["rank-0.safetensors"])


@pytest.mark.parametrize(
    ("way", "near"),
    [("parallel.compress=powersgd", 0.5), ("parallel.compress=bf16", 0.02), ("parallel.compress=fp16", 0.02)],
)
def test_compressed_gradients_train_like_whole_ones(small: Callable[..., Job], ranks: Ranks, way: str, near: float):
    """A network of four channels leaves PowerSGD little to leave out: it lags behind at first."""
    whole, sent = small("steps=40", out="whole"), small("steps=40", way, out="sent")

    train(whole)
    ranks(2, train, sent)

    assert losses(whole)[0] == pytest.approx(2.3, abs=0.1)
    assert losses(sent)[-1] == pytest.approx(losses(whole)[-1], abs=near)
