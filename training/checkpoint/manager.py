"""Saving and resuming among ranks: when a save is due, which rank writes what, which checkpoint all resume from."""

from __future__ import annotations

import errno
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from training.checkpoint.digest import digest, of_folder
from training.checkpoint.interval import Interval
from training.checkpoint.manifest import Place, whole
from training.checkpoint.resume import Resume
from training.checkpoint.shards import Shares
from training.checkpoint.snapshot import Snapshot, Writer
from training.checkpoint.state import State
from training.checkpoint.store import Share, Store
from training.checkpoint.uploads import Copies
from training.config.errors import refusal
from training.config.run import Checkpoint, Health
from training.parallel import Parallel, Ranks
from training.secret import KeyFileError, key_in

PATIENCE_SECONDS = 0.5  # with a save that is all but written; well below the least `health.step_seconds`


class CheckpointNotSavedError(OSError):
    """A state that did not become a checkpoint; the message says why."""


class Checkpoints:
    """The checkpoints of a run, on every rank.

    A state that every rank holds alike is written by the lowest rank that sees the folder: one rank where all nodes
    share it, one a node where each has its own, so that losing any node leaves a copy on every other one. What is a
    rank's alone, and every part of a state that is cut over the ranks, is written by its rank and committed with the
    others' by that lowest one.

    out: the run's folder. recipe: what decides the trained weights (`training.data.recipe`); a checkpoint of another
    recipe is refused. durable: called with the step when this rank's copy is on disk. note: called with one line for
    people, such as which checkpoint was not used and why.
    """

    def __init__(
        self,
        config: Checkpoint,
        health: Health,
        recipe: Mapping[str, Any],
        ranks: Ranks,
        state: State,
        parallel: Parallel,
        *,
        out: Path,
        durable: Callable[[int], None],
        note: Callable[[str], None],
    ) -> None:
        self._config, self._health, self._recipe, self._ranks, self._state, self._parallel = (
            config,
            health,
            recipe,
            ranks,
            state,
            parallel,
        )
        self._sharded = parallel.sharded
        self._durable, self._note = durable, note
        run = ranks.broadcast(secrets.token_hex(8).encode() if ranks.rank == 0 else None, 0).decode()
        self._store = Store(out / "checkpoints", config.keep, run, self._key())
        self._leads = ranks.gather(self._lowest_here(run))
        self._leading = self._leads[ranks.rank] == ranks.rank
        if self._sharded and len(set(self._leads)) > 1:
            raise refusal("out", "a sharded model is saved by all ranks together: set it to a folder that they share")
        self._together = self._sharded or any(ranks.gather(bool(state.own()) and not self._leading))
        if self._leading:
            self._store.clear_unfinished()
        self._copies = Copies(config, ranks, self._store, note)
        self._writer = Writer()
        self._interval = Interval(config, ranks.world)
        self._snapshot: Snapshot | None = None
        self._shares: Shares | None = None
        self._saved_step, self._saved_at, self._blocked = -1, time.monotonic(), 0.0
        self._waited_for: int | None = None  # the save in flight that was waited for, in vain

    def _key(self) -> bytes | None:
        """What manifests are signed with; every rank reads it, and all refuse the job where one cannot."""
        key, fault, file = None, None, self._config.key
        try:
            key = file and key_in(file)
        except KeyFileError as error:
            fault = str(error)
        except OSError as error:
            fault = f"cannot read {file}: {error.strerror}"
        for why in filter(None, self._ranks.gather(fault)):
            raise refusal("checkpoint.key", why)
        return key

    def _lowest_here(self, run: str) -> int:
        """The lowest rank that sees the same folder: each leaves its mark in it, then looks for the others'."""
        mark = self._store.root / f".seen-{run}-{self._ranks.rank:05d}"
        mark.touch()
        self._ranks.barrier()
        lowest = min(self._store.root.glob(f".seen-{run}-*"))
        self._ranks.barrier()
        mark.unlink()
        return int(lowest.name[-5:])

    def restore(self) -> int:
        """Loads the newest valid checkpoint that any rank sees; returns its step, 0 where there is none.

        Raises JobError where it was trained by another recipe, or where uploads cannot be made.
        """
        for key, fault in filter(None, self._ranks.gather(self._copies.connect())):
            raise refusal(key, fault)
        resume = Resume(
            self._recipe,
            self._ranks,
            self._state,
            self._store,
            self._note,
            leading=self._leading,
        )
        step, everywhere = resume.sharded() if self._sharded else resume.whole()
        self._saved_step = step if everywhere else -1
        self._copies.make_up(step)
        return step

    def due(self, step: int) -> bool:
        """Whether a save is due after this step, by `checkpoint.every_steps`; the same on every rank."""
        every = self._config.every_steps
        return every is not None and step % every == 0

    def overdue(self) -> bool:
        """On rank 0, whether a save is due by the clock; false while the save before is still being written."""
        if self._ranks.rank != 0 or self._writer.busy():
            return False
        self._settle()
        seconds = self._interval.seconds
        return seconds is not None and time.monotonic() - self._saved_at >= seconds

    def save(self, step: int) -> None:
        """Starts to save the state after so many steps; waits for a copy of what the next gradients change. A save that
        failed is reported, and training continues: the older checkpoints stay. So it does where any rank still writes
        the save before: if that rank waited for its disk, the others would give it up."""
        again = self._waited_for == self._saved_step
        if not any(self._ranks.vote(int(self._writer.busy(0.0 if again else PATIENCE_SECONDS))).result()):
            self._start(step)
            return
        self._waited_for = self._saved_step
        if self._ranks.rank == 0 and not again:
            blocked = f"while the save of step {self._saved_step} is being written"
            self._note(f"step {step} is not saved, nor any later one, {blocked}")

    def save_last(self, step: int) -> None:
        """Starts to save what the run ends with, after the save before; peers wait as long as for the first step."""
        self._ranks.wait_at_most(self._health.start_seconds)
        self._start(step)

    def _start(self, step: int) -> None:
        if step == self._saved_step:
            return
        self._settle()
        began = self._saved_at = time.monotonic()
        self._saved_step = step
        self._parallel.broadcast_buffers(self._state.of_each_rank())
        places, live = self._own_part()
        if live or self._together:
            snapshot = self._snapshot = self._fitting(places, live)
            snapshot.begin(live)
            self._writer.start(f"checkpoint {step}", partial(self._write, step, snapshot, places))
        self._blocked = time.monotonic() - began

    def hold(self) -> None:
        """Before the optimizer changes the parameters: returns when a save that has begun has its copy of them."""
        if self._snapshot is not None:
            began = time.monotonic()
            self._snapshot.hold()
            self._blocked += time.monotonic() - began

    def prepare(self) -> None:
        """Makes the buffers of later saves, now that the optimizer has its state."""
        self._snapshot = self._fitting(*self._own_part())

    def _own_part(self) -> tuple[dict[str, Place], dict[str, torch.Tensor]]:
        """What this rank writes, by key in its file: the places in the whole state, and the live tensors."""
        if self._sharded:
            tensors = self._state.tensors()
            self._shares = self._shares or Shares(tensors, self._ranks)
            return self._shares.places(), self._shares.live(tensors)
        live = (self._state.tensors() if self._leading else {}) | self._state.own()
        return {name: whole(name, tensor) for name, tensor in live.items()}, live

    def _fitting(self, places: dict[str, Place], live: dict[str, torch.Tensor]) -> Snapshot:
        if self._snapshot is None or self._snapshot.tensors.keys() != live.keys():
            early = self._state.changed_by_gradients()
            return Snapshot(live, at_once={key for key, place in places.items() if place.name in early})
        return self._snapshot

    def _write(self, step: int, snapshot: Snapshot, places: dict[str, Place]) -> None:
        """In the writer's thread: the copy, this rank's file, and on the lowest rank the commit."""
        own_share = self._written(step, snapshot, places)
        written = self._ranks.gather(own_share, self._ranks.saving) if self._together else [own_share]
        written = [Share.of(share) if isinstance(share, dict) else share for share in written]
        fault = next((share for share in written if isinstance(share, str)), None)
        if self._leading:
            fault = fault or self._committed(step, written)
        if fault is not None:
            if self._leading:
                self._store.drop(step)
            raise CheckpointNotSavedError(fault)

    def _written(self, step: int, snapshot: Snapshot, places: dict[str, Place]) -> Share | str | None:
        """This rank's file; None where it has nothing to write, a reason where it must not or cannot."""
        tensors = snapshot.complete()
        if not tensors:
            return None
        if self._health.finite and (bad := [n for n, t in tensors.items() if n.startswith("model.") and unsound(t)]):
            return f"{bad[0]} is not finite"
        try:
            return self._store.write(step, self._ranks.rank, tensors, places)
        except OSError as error:
            return self._reason(error)

    def _committed(self, step: int, written: Sequence[Share | str | None]) -> str | None:
        """On the lowest rank: seals what the ranks wrote into its folder; returns a reason where it cannot."""
        leads = self._leads if self._together else [self._ranks.rank]
        here = [share for share, lead in zip(written, leads, strict=True) if lead == self._ranks.rank]
        about: dict[str, Any] = {"world_size": self._ranks.world, "recipe": self._recipe}
        try:
            shares = [share for share in here if isinstance(share, Share)]
            folder = self._store.commit(step, shares, about)
        except OSError as error:
            return self._reason(error)
        try:
            self._store.prune(self._copies.sending)
        except OSError as error:
            self._note(f"checkpoints before step {step} are not all removed: {self._reason(error)}")
        self._durable(step)
        self._copies.offer(folder)
        return None

    def _reason(self, error: OSError) -> str:
        """What the system says, where, and what to do about a full disk."""
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "; free some of it, or set checkpoint.keep lower" if full else ""
        return f"{error.strerror}: {error.filename or self._store.root}{remedy}"

    def _settle(self) -> None:
        """Waits for the save in flight, if one is, and takes note of what it cost: the time the loop waited, and on a
        CPU the time that the writer took from it."""
        try:
            saved = self._writer.wait()
        except OSError as why:
            self._note(f"step {self._saved_step} is not saved: {why}; training goes on")
            return
        if saved:
            taken = self._writer.cpu_seconds if self._ranks.device.type == "cpu" else 0.0
            self._interval.measured(self._blocked + taken)

    def digest(self) -> str:
        """sha256 over the state, on every rank; that of the folder where more than rank 0 has a part in it."""
        own_digest = None
        if self._ranks.rank == 0:
            final = self._store.folder(self._saved_step)
            own_digest = (
                of_folder(final) if self._together else digest(self._state.tensors() | self._state.own())
            ).encode()
        return self._ranks.broadcast(own_digest, 0).decode()

    def finish(self) -> None:
        """Returns when the last save is durable on every rank that writes; raises OSError where it is not."""
        try:
            self._writer.wait()
        except OSError as why:
            raise CheckpointNotSavedError(f"step {self._saved_step} is not saved: {why}") from why
        self._ranks.barrier()

    def upload(self, seconds_left: Callable[[], float]) -> None:
        """Returns when the newest checkpoint is uploaded, could not be, or a rank has no more time."""
        self._copies.finish(self._saved_step, seconds_left)


def unsound(tensor: torch.Tensor) -> bool:
    """Whether a snapshot's buffer holds NaN or an infinity: then its least or its largest value is one. Read in the
    order of memory, since torch is slow at any other."""
    flat = tensor.as_strided((tensor.numel(),), (1,))
    return tensor.is_floating_point() and tensor.numel() > 0 and not all(map(math.isfinite, torch.aminmax(flat)))
