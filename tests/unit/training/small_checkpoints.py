"""Small checkpoints, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from training.checkpoint.store import Store

ABOUT: dict[str, Any] = {"world_size": 1, "recipe": {"seed": 1}}


def tensors(step: int) -> dict[str, torch.Tensor]:
    return {"w": torch.full((500,), float(step)), "count": torch.tensor(step)}


def two_checkpoints(root: Path) -> Store:
    """Checkpoints of the steps 10 and 20."""
    store = Store(root)
    for step in (10, 20):
        store.save(step, tensors(step), ABOUT)
    return store
