"""Models that no rank holds alone: they learn what one process learns, resume to the same bits, change their cut."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from forked import free_ports
from trained import After, losses

from training.checkpoint import manager
from training.checkpoint.digest import of_folder
from training.config.job import Job, JobError
from training.config.run import Tensor
from training.loop import train
from training.parallel import connect, consensus
from training.parallel.mesh import mesh

Ranks = Callable[..., list]
FSDP = "parallel={kind='fsdp'}"
TENSOR = "parallel={kind='tensor'}"
GPT = (
    "steps=6",
    "model={kind='gpt', layers=2, heads=2, width=32}",
    "data={kind='synthetic-text', global_batch=8, samples=64, held_out=8, length=16, vocabulary=32}",
)
PIPELINE = "parallel={kind='pipeline', micro_batches=3}"


@pytest.fixture(autouse=True)
def _every_step_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of these jobs takes less than a vote's time: without this a stop would come some steps later."""
    monkeypatch.setattr(consensus, "VOTE_SECONDS", 0.0)


def stopped_after(job: Job, questions: int):
    return train(job, stop=After(questions))


def refused(jobs: list[Job], ports: list[int]) -> list[str]:
    """What each job is told; the ranks meet anew for each, on a port of its own."""
    told = []
    for job, port in zip(jobs, ports, strict=True):
        os.environ["MASTER_PORT"] = str(port)
        with pytest.raises(JobError) as error:
            train(job)
        told.append(str(error.value))
    return told


@pytest.mark.parametrize(("way", "world"), [(FSDP, 3), (TENSOR, 2), (PIPELINE, 4)])
def test_a_cut_model_learns_as_one_process_does_and_resumes_bit_for_bit(
    small: Callable[..., Job], ranks: Ranks, way: str, world: int
):
    ema = "optimizer.ema=0.5"
    alone, straight, job = small(ema, out="alone"), small(way, ema, out="straight"), small(way, ema, out="stopped")

    one = train(alone)
    results = ranks(world, train, straight)
    ranks(world, stopped_after, job, 5)
    resumed = ranks(world, train, job)

    assert losses(straight) == pytest.approx(losses(alone), abs=1e-4)
    assert {result.accuracy for result in results} == {one.accuracy}
    assert {result.digest for result in (*results, *resumed)} == {of_folder(job.out / "checkpoints/step-00000012")}


def test_a_cut_model_keeps_one_average_of_statistics_that_differ_by_rank(small: Callable[..., Job], ranks: Ranks):
    keys = (FSDP, "model.norm=batch", "optimizer.ema=0.5")
    straight, job = small(*keys, out="straight"), small(*keys, out="stopped")

    results = ranks(2, train, straight)
    ranks(2, stopped_after, job, 5)
    resumed = ranks(2, train, job)

    assert len({(result.digest, result.accuracy) for result in (*results, *resumed)}) == 1


def test_the_digest_of_a_large_state_may_take_longer_than_a_step(
    small: Callable[..., Job], ranks: Ranks, monkeypatch: pytest.MonkeyPatch
):
    def slowly(folder: Path) -> str:
        time.sleep(3)  # as large files would take, and longer than the other rank waits for a step
        return of_folder(folder)

    monkeypatch.setattr(manager, "of_folder", slowly)
    job = small(FSDP, "steps=2", "health.step_seconds=1")

    results = ranks(2, train, job)

    assert {result.digest for result in results} == {of_folder(job.out / "checkpoints/step-00000002")}


def impatient(job: Job) -> str:
    with connect(60) as ranks:
        assert isinstance(job.parallel, Tensor)
        table = mesh(job.parallel, ranks, job.data, clip_norm=0, start_seconds=job.health.start_seconds)
        row = table["model"].get_group()
        ranks.wait_at_most(1)
        if ranks.rank == 0:
            time.sleep(3)  # longer than its row waits
            return "slept"
        try:
            dist.all_reduce(torch.ones(1), group=row)
        except RuntimeError as error:
            return str(error)
        return "summed"


def test_a_row_of_a_mesh_waits_for_a_peer_no_longer_than_all_ranks_do(small: Callable[..., Job], ranks: Ranks):
    told = ranks(4, impatient, small("parallel={kind='tensor', ways=2}"))

    assert "Timed out" in told[1]
    assert (told[0], *told[2:]) == ("slept", "summed", "summed")


def test_a_checkpoint_is_read_however_it_was_cut(small: Callable[..., Job], ranks: Ranks):
    """3 ranks of FSDP, then a pipeline of the other schedule, then tensor parallel ranks, then one process."""
    ranks(3, stopped_after, small(FSDP), 3)
    ranks(2, stopped_after, small(PIPELINE, "parallel.schedule=gpipe"), 3)
    ranks(2, stopped_after, small(TENSOR), 3)
    train(small())
    train(small(out="alone"))

    assert losses(small()) == pytest.approx(losses(small(out="alone")), abs=1e-4)
    assert len(losses(small())) == 12


@pytest.mark.parametrize(("way", "world"), [(FSDP, 2), (TENSOR, 4)])
def test_a_cut_gpt_with_its_tied_embedding_learns_as_one_process_does(
    small: Callable[..., Job], ranks: Ranks, way: str, world: int
):
    judged = (*GPT, "optimizer.ema=0.5", "eval.every_steps=2")  # by an average that stands in the weights' place
    alone, together = small(*judged, out="alone"), small(*judged, way, out="together")

    train(alone)
    ranks(world, train, together)

    assert losses(together) == pytest.approx(losses(alone), abs=1e-4)
    assert losses(together)[-1] < losses(together)[0]


REFUSED = [
    (("parallel={kind='tensor', ways=2}",), "parallel.ways: 2 does not divide 3 ranks; set 3"),
    (
        ("parallel={kind='pipeline', stages=3, micro_batches=5}",),
        "data.global_batch: 24 is not a multiple of 1 rows of ranks × 5 parallel.micro_batches = 5",
    ),
    (
        ("parallel={kind='pipeline', stages=3}", "data.micro_batch=4"),
        "data.micro_batch: set it to 0: parallel.micro_batches splits the batch here",
    ),
    (
        (*GPT, "parallel={kind='pipeline', stages=3, micro_batches=4}"),
        "parallel.kind: Gpt is not a sequence of layers; use fsdp or tensor",
    ),
    ((FSDP, "data.global_batch=2"), "data.global_batch: 2 cannot be shared by 3 ranks"),
]


def test_ranks_that_cannot_stand_so_are_told_what_to_change(small: Callable[..., Job], ranks: Ranks):
    jobs = [small(*settings) for settings, _ in REFUSED]

    told = ranks(3, refused, jobs, free_ports(len(jobs)))

    assert told == [[f"job small {why}" for _, why in REFUSED]] * 3


def test_a_cut_model_needs_ranks(small: Callable[..., Job]):
    with pytest.raises(JobError, match=r"parallel\.kind: fsdp needs more than one rank; set ddp$"):
        train(small(FSDP))
