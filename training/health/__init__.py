"""What ends a run that goes wrong: losses that are no numbers or jump, and ranks that do nothing."""

from __future__ import annotations

from training.health.heartbeat import Heartbeat
from training.health.losses import Ill, Losses

__all__ = ["Heartbeat", "Ill", "Losses"]
