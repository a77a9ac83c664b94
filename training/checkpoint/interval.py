"""How often to save, such that saves and lost work together cost least."""

from __future__ import annotations

import math

from training.config.run import Checkpoint

HOURS_A_RANK = 50_000  # Llama 3 405B: 419 unexpected interruptions of 16,384 GPUs in 54 days (arXiv 2407.21783, 3.3.4)
FIRST_SECONDS = 60.0  # before a save was measured


def daly(cost_seconds: float, mtbf_seconds: float) -> float:
    """Seconds of work between two saves that lose least: √(2·C·M)·(1 + ⅓·√(C/2M) + C/18M) − C, and M where C ≥ 2·M.

    cost_seconds: what a save costs the run (C). mtbf_seconds: mean time between interruptions (M). J. T. Daly, A higher
    order estimate of the optimum checkpoint interval for restart dumps, FGCS 22 (2006), equation 37; its first term is
    J. W. Young's (CACM 17, 1974).
    """
    if cost_seconds >= 2 * mtbf_seconds:
        return mtbf_seconds
    ratio = cost_seconds / (2 * mtbf_seconds)
    work = math.sqrt(2 * cost_seconds * mtbf_seconds) * (1 + math.sqrt(ratio) / 3 + ratio / 9)
    return max(work - cost_seconds, cost_seconds)


class Interval:
    """Seconds between saves by the clock: as the job says, or for "auto" by the dearest save so far."""

    def __init__(self, config: Checkpoint, world: int) -> None:
        self._auto = config.every_seconds == "auto"
        self._mtbf = 3600 * (config.mtbf_hours or HOURS_A_RANK / world)
        self._cost = 0.0
        self.seconds = config.every_seconds if isinstance(config.every_seconds, float) else None
        if self._auto:
            self.seconds = min(FIRST_SECONDS, self._mtbf)

    def measured(self, cost_seconds: float) -> None:
        """Takes note of what a save has cost the run."""
        self._cost = max(self._cost, cost_seconds)
        if self._auto and self._cost:
            self.seconds = daly(self._cost, self._mtbf)
