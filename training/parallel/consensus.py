"""Votes of all ranks on stopping and saving, at steps that every rank knows in advance."""

from __future__ import annotations

import time

from training.parallel.process_group import Ranks, Vote

VOTE_SECONDS = 0.5  # a spot notice gives two minutes; a message to every rank costs up to a millisecond


class Agreement:
    """Stopping and saving, put to the vote about every VOTE_SECONDS.

    Each vote also settles when the next one is: after the fewest steps that any rank expects to do in that time. So
    stopping costs the same however short a step is. A single rank decides at every step. Where a
    step is short, a vote has the next one too to travel in.

    stride: only multiples of it are steps to stop or save at.
    """

    def __init__(self, ranks: Ranks, done: int, stride: int = 1) -> None:
        self._ranks, self._stride = ranks, stride
        self._next, self._ahead = self._allowed(done + 1), 1
        self._last, self._voted_at = done, time.monotonic()
        self._stop = self._save = False
        self._vote: Vote | None = None

    def ask(self, step: int, *, stop: bool, save: bool) -> None:
        """Notes this rank's wishes after `step`; at a vote's step they start to travel while the step goes on."""
        self._stop |= stop
        self._save |= save
        if step == self._next:
            negated = -self._steps_until_next(step)  # of what is voted on the largest wins, and here the fewest must
            self._vote = self._ranks.vote(self._stop, self._save, negated)

    def _allowed(self, step: int) -> int:
        """The next step from `step` on that all ranks may stop at."""
        return -(-step // self._stride) * self._stride

    def _steps_until_next(self, step: int) -> int:
        now = time.monotonic()
        pace = (now - self._voted_at) / (step - self._last)
        self._last, self._voted_at = step, now
        return 1 if self._ranks.world == 1 else max(1, int(VOTE_SECONDS / pace))

    def settled(self, step: int) -> tuple[bool, bool]:
        """Whether all stop, and whether all save, now that `step` is done: the same on every rank; (False, False) while
        no vote is due."""
        due = self._allowed(self._last + (self._ahead > self._stride))
        if self._vote is None or step < due:
            return False, False
        stop, save, negated = self._vote.result()
        self._vote, self._ahead = None, -negated
        self._next = self._allowed(max(self._last + self._ahead, step + 1))
        self._save = False
        return bool(stop), bool(save)
