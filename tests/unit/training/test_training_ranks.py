"""Several ranks over gloo."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trained import After, losses, metrics

from training.checkpoint.digest import of_folder
from training.checkpoint.store import Share, Store
from training.config.job import Job, JobError
from training.loop import train
from training.metrics.events import Report, Step
from training.parallel import consensus

Ranks = Callable[..., list]


@pytest.fixture
def every_step_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of these jobs takes less than a vote's time: without this a stop would come some steps later."""
    monkeypatch.setattr(consensus, "VOTE_SECONDS", 0.0)


def stopped_after(job: Job, questions: int):
    return train(job, stop=After(questions))


def stopped_by_rank_1(job: Job, questions: int):
    return train(job, stop=After(questions if os.environ["RANK"] == "1" else 10**6))


def own_folder(job: Job, hosts: list[str], questions: int = 10**6):
    """Each rank as a node of its own, with a disk of its own."""
    rank = int(os.environ["RANK"])
    os.environ["LOCAL_RANK"] = "0"
    return train(replace(job, out=job.out / hosts[rank]), stop=After(questions))


def refused(job: Job) -> str:
    try:
        train(job)
    except JobError as error:
        return str(error)
    return "trained"


@pytest.mark.parametrize(("world", "micro_batch"), [(2, 0), (3, 0), (5, 2)])
def test_ranks_equal_one_process_with_the_same_global_batch(
    small: Callable[..., Job], ranks: Ranks, world: int, micro_batch: int
):
    """Five ranks share 24 samples unevenly, and accumulate over a different number of parts each."""
    alone = small("steps=20", out="alone")
    together = small("steps=20", f"data.micro_batch={micro_batch}", out="together")

    one = train(alone)
    results = ranks(world, train, together)

    assert losses(together) == pytest.approx(losses(alone), abs=1e-5)
    assert {result.accuracy for result in results} == {one.accuracy}
    assert results[0].world_size == world


@pytest.mark.usefixtures("every_step_votes")
def test_resumed_ranks_equal_uninterrupted_ones_bit_for_bit(small: Callable[..., Job], ranks: Ranks):
    """Three ranks: a sum over two has one order only. The other worlds are a drill (test_exact_matrix.py)."""
    settings = ("model.norm=batch", "data.micro_batch=3", "model.width=8")
    straight, job = small(*settings, out="straight"), small(*settings, out="stopped")

    digest = ranks(3, train, straight)[0].digest
    for questions in (3, 4):
        ranks(3, stopped_after, job, questions)
    resumed = ranks(3, train, job)

    assert {result.digest for result in resumed} == {digest}
    assert (resumed[0].restarts, resumed[0].lost_steps) == (2, 0)
    assert [line["step"] for line in metrics(job) if "loss" in line] == list(range(1, 13))


@pytest.mark.usefixtures("every_step_votes")
def test_shards_give_the_same_bits_on_any_number_of_ranks_and_in_turn(small: Callable[..., Job], ranks: Ranks):
    """4 → 3 → 2 → 4 against one process and against 4; the other seeds and norms are a drill (test_exact_matrix.py)."""
    shards = ("parallel.shards=5", "data.micro_batch=2", "model.norm=batch")
    fixed = {train(small(*shards, out="1")).digest, ranks(4, train, small(*shards, out="4"))[0].digest}
    job = small(*shards, out="elastic")

    for world in (4, 3, 2):
        ranks(world, stopped_after, job, 3)

    assert {result.digest for result in ranks(4, train, job)} == fixed


@pytest.mark.usefixtures("every_step_votes")
def test_one_rank_that_is_asked_to_stop_stops_all_at_the_same_step(small: Callable[..., Job], ranks: Ranks):
    results = ranks(3, stopped_by_rank_1, small(), 6)

    assert {(result.steps, result.finished) for result in results} == {(6, False)}


def test_a_vote_costs_a_message_in_many_short_steps_and_is_still_heard(small: Callable[..., Job], ranks: Ranks):
    job = small("steps=5000", "log_every=1000")

    results = ranks(2, stopped_by_rank_1, job, 6)

    assert len({result.steps for result in results}) == 1
    assert 6 < results[0].steps < 5000


PAUSE_SECONDS = 2  # a rank that hangs: longer than its peers wait after the first steps, shorter than before them


class Pauses:
    """Rank 1 does nothing for so long, before its first step and again before its fourth."""

    def __init__(self) -> None:
        self.asked = 0

    def requested(self) -> bool:
        self.asked += 1
        if os.environ["RANK"] == "1" and self.asked in (1, 5):
            time.sleep(PAUSE_SECONDS)
        return False


def given_up(job: Job) -> int:
    """The questions that this rank was asked before it lost the other one."""
    pauses = Pauses()
    with pytest.raises(RuntimeError):
        train(job, stop=pauses)
    return pauses.asked


def test_a_peer_is_waited_for_long_up_to_the_first_step_and_shortly_after_it(small: Callable[..., Job], ranks: Ranks):
    waiting, pausing = ranks(2, given_up, small("health.start_seconds=60", "health.step_seconds=1"))

    assert waiting in (4, 5)
    assert pausing == 5


class SlowDisk(Report):
    """Writes nothing before the report of step `until` (0: of any), and then takes `seconds`; keeps what is told."""

    def __init__(self, until: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.until, self.seconds, self.reached = until, seconds, threading.Event()
        self.told: list[str] = []
        self.saved: list[int] = []
        if until == 0:
            self.reached.set()
        write = Store.write

        def slowly(store: Store, *share: Any) -> Share:
            if os.environ["RANK"] == "0":
                assert self.reached.wait(20)
                time.sleep(self.seconds)
            return write(store, *share)

        monkeypatch.setattr(Store, "write", slowly)

    def step(self, step: Step) -> None:
        if step.step == self.until:
            self.reached.set()

    def note(self, text: str) -> None:
        self.told.append(text)

    def checkpoint(self, step: int) -> None:
        self.saved.append(step)


def on_slow_disk(job: Job, disk: SlowDisk) -> tuple[list[str], list[int]]:
    train(job, report=disk)
    return disk.told, disk.saved


@pytest.mark.parametrize("way", ["parallel.kind=ddp", "parallel={kind='fsdp'}"])
def test_a_save_that_is_due_while_the_one_before_is_being_written_is_passed_over_by_all_ranks(
    small: Callable[..., Job], ranks: Ranks, monkeypatch: pytest.MonkeyPatch, way: str
):
    job = small(way, "checkpoint.every_steps=2", "health.step_seconds=2")

    told, saved = ranks(2, on_slow_disk, job, SlowDisk(9, 0, monkeypatch))[0]

    assert told[0] == "step 4 is not saved, nor any later one, while the save of step 2 is being written"
    assert (saved[0], saved[-1]) == (2, 12)
    assert not {4, 6, 8} & {*saved}


@pytest.mark.parametrize("way", ["model.norm=batch", "parallel={kind='fsdp'}"])
def test_the_last_save_is_waited_for_longer_than_a_step(
    small: Callable[..., Job], ranks: Ranks, monkeypatch: pytest.MonkeyPatch, way: str
):
    """Batch norm's buffers are made equal before a save: the other rank waits there."""
    job = small(way, "checkpoint.every_steps=11", "health.step_seconds=2")

    told, saved = ranks(2, on_slow_disk, job, SlowDisk(0, 4, monkeypatch))[0]

    assert (told, saved) == ([], [11, 12])


@pytest.mark.usefixtures("every_step_votes")
def test_each_node_with_its_own_disk_keeps_a_copy_and_any_of_them_is_enough(small: Callable[..., Job], ranks: Ranks):
    keys = ("model.norm=batch", "optimizer.ema=0.5")  # ranks' statistics differ, and so do their averages
    straight = ranks(2, train, small(*keys, out="straight"))[0]
    job = small(*keys, "checkpoint.every_steps=3", out="nodes")

    ranks(2, own_folder, job, ["a", "b"], 6)
    copies = [of_folder(job.out / node / "checkpoints" / "step-00000006") for node in ("a", "b")]
    resumed = ranks(2, own_folder, job, ["new", "b"])

    assert len(set(copies)) == 1
    assert {result.digest for result in resumed} == {straight.digest}
    assert (resumed[0].restarts, resumed[0].lost_steps) == (1, 0)
    assert (job.out / "new" / "checkpoints" / "step-00000012").is_dir()


@pytest.mark.usefixtures("every_step_votes")
def test_the_newest_checkpoint_of_any_node_wins(small: Callable[..., Job], ranks: Ranks):
    job = small("checkpoint.every_steps=3", out="nodes")
    ranks(2, own_folder, job, ["a", "b"], 6)
    newest = job.out / "a" / "checkpoints" / "step-00000006" / "rank-0.safetensors"
    newest.write_bytes(b"damaged")

    resumed = ranks(2, own_folder, job, ["a", "b"])

    assert (resumed[0].lost_steps, resumed[0].digest) == (0, ranks(2, train, small(out="straight"))[0].digest)


def test_a_shared_folder_has_one_writer(small: Callable[..., Job], ranks: Ranks, tmp_path: Path):
    job = small()

    ranks(3, train, job)

    assert sorted(path.name for path in (job.out / "checkpoints").iterdir()) == ["step-00000012"]
    assert [path.name for path in (job.out / "progress").iterdir()] == ["rank-0.json"]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("data.global_batch=2", "job small data.global_batch: 2 cannot be shared by 3 ranks"),
        ("parallel.shards=2", "job small parallel.shards: 2 cannot be shared by 3 ranks"),
    ],
)
def test_more_ranks_than_shares_are_refused(small: Callable[..., Job], ranks: Ranks, override: str, told: str):
    assert ranks(3, refused, small(override)) == [told] * 3
