"""Saving and resuming among ranks: who writes where, which checkpoint everybody continues from, and when one is due."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

from training.checkpoint.digest import digest
from training.checkpoint.state import State
from training.checkpoint.store import Contents, Damaged, Found, Store
from training.checkpoint.writer import Writer
from training.config import Job
from training.dist import Ranks
from training.dist.ranks import START_SECONDS, STEP_SECONDS

__all__ = ["Checkpoints", "Damaged", "digest"]


class Checkpoints:
    """The checkpoints of a run, on every rank.

    A folder is written by the lowest rank that sees it: one rank where all nodes share it, one a node where each has
    its own, so that losing any node leaves a copy on every other one.

    durable: called with the step when this rank's copy is safe. note: called with a line about what was passed over.
    """

    def __init__(
        self, job: Job, ranks: Ranks, state: State, durable: Callable[[int], None], note: Callable[[str], None]
    ) -> None:
        self._job, self._ranks, self._state, self._note = job, ranks, state, note
        self._store = Store(job.out / "checkpoints", job.checkpoint.keep)
        self._writes = self._lowest_here()
        if self._writes:
            self._store.clear_unfinished()
        self._writer = Writer(self._store, durable)
        self._saved_step = -1
        self._saved_at = time.monotonic()

    def _lowest_here(self) -> bool:
        """Whether no lower rank sees the same folder: each leaves its mark in it, then looks for the others'."""
        ranks = self._ranks
        if ranks.world == 1:
            return True
        run = ranks.broadcast(secrets.token_hex(8).encode() if ranks.rank == 0 else None, 0).decode()
        mark = self._store.root / f".seen-{run}-{ranks.rank:05d}"
        mark.touch()
        ranks.barrier()
        lowest = min(self._store.root.glob(f".seen-{run}-*")) == mark
        ranks.barrier()
        mark.unlink()
        return lowest

    def restore(self) -> int:
        """Loads the newest valid checkpoint that any rank sees; returns its step, 0 where there is none.

        Raises JobError where it was trained by another recipe.
        """
        found = self._store.newest() if self._writes else Found()
        for folder, why in found.passed_over:
            self._store.set_aside(folder)
            self._note(f"checkpoint {folder.name} passed over: {why}")
        steps = self._ranks.gather(found.contents.step if found.contents else -1)
        if max(steps) < 0:
            return 0
        source = steps.index(max(steps))
        contents = self._shared(found.contents, source)
        self._refuse_other_recipe(contents)
        self._state.load(contents.tensors())
        owners = self._ranks.gather(self._writes)
        if all(step == contents.step for step, writes in zip(steps, owners, strict=True) if writes):
            self._saved_step = contents.step  # every copy is there already
        return contents.step

    def _shared(self, mine: Contents | None, source: int) -> Contents:
        """The source's checkpoint on every rank: the very bytes it verified."""
        if self._ranks.world == 1:
            assert mine is not None
            return mine
        here = self._ranks.rank == source
        head = json.dumps([mine.step, mine.about, list(mine.files)]).encode() if mine and here else None
        step, about, names = json.loads(self._ranks.broadcast(head, source))
        files = {name: self._ranks.broadcast(mine.files[name] if mine and here else None, source) for name in names}
        return Contents(step=step, about=about, files=files)

    def _refuse_other_recipe(self, contents: Contents) -> None:
        saved, wanted = contents.about.get("recipe", {}), self._job.recipe()
        for key in sorted(saved.keys() | wanted.keys()):
            if saved.get(key) != wanted.get(key):
                change = f"{self._job.out} was trained with {saved.get(key)!r}, not {wanted.get(key)!r}"
                raise self._job.refusal(key, f"{change}; set another out, or remove that folder")

    def due(self, step: int) -> bool:
        """Whether the job asks for a save after this step; every rank knows."""
        every = self._job.checkpoint.every_steps
        return every is not None and step % every == 0

    def overdue(self) -> bool:
        """Whether rank 0 wants a save by the clock; only it can say."""
        seconds = self._job.checkpoint.every_seconds
        return seconds is not None and self._ranks.rank == 0 and time.monotonic() - self._saved_at >= seconds

    def save(self, step: int) -> None:
        """Starts to save the state after so many steps; waits for the save before and one copy, not for the disk."""
        self._saved_at = time.monotonic()
        if step == self._saved_step:
            return
        self._saved_step = step
        self._ranks.same_buffers(self._state.model)
        if not self._writes:
            return
        self._writer.wait()
        about: dict[str, Any] = {"world_size": self._ranks.world, "recipe": self._job.recipe()}
        self._writer.save(step, self._state.snapshot(), about)

    def prepare(self) -> None:
        """Makes the buffers of later saves, now that the optimizer has its state."""
        if self._writes:
            self._state.snapshot()

    def digest(self) -> str:
        """sha256 over the state as rank 0 has it, on every rank."""
        mine = digest(self._state.tensors()).encode() if self._ranks.rank == 0 else None
        return self._ranks.broadcast(mine, 0).decode()

    def finish(self) -> None:
        """Returns when the last save is durable on every rank that writes."""
        self._ranks.wait_at_most(START_SECONDS)
        self._writer.wait()
        self._ranks.barrier()
        self._ranks.wait_at_most(STEP_SECONDS)
