"""torch.compile, for jobs with `model.compile`."""

from __future__ import annotations

import shutil

import torch
from torch import nn

from training.config.errors import refusal


def compiled(model: nn.Module, device: torch.device) -> nn.Module:
    """The same module, whose forward and backward are compiled at their first call; its state has the same keys.

    Raises JobError where this machine has no compiler for its device.
    """
    from torch._inductor.config import cpp  # its import takes seconds

    if device.type == "cpu" and not any(name and shutil.which(name) for name in cpp.cxx):
        raise refusal("model.compile", "needs a C++ compiler on a CPU: install g++, or set it to false")
    model.compile()
    return model
