"""torch.compile, where a job asks for it."""

from __future__ import annotations

import shutil

import torch
from torch import nn

from training.config.job import Job


def compiled(model: nn.Module, job: Job, device: torch.device) -> nn.Module:
    """The same module, whose forward and backward are compiled at their first call; its state has the same keys.

    Raises JobError where this machine has no compiler for its device.
    """
    if not job.model.compile:
        return model
    from torch._inductor.config import cpp  # seconds of imports: only where it is asked for

    if device.type == "cpu" and not any(name and shutil.which(name) for name in cpp.cxx):
        raise job.refusal("model.compile", "needs a C++ compiler on a CPU: install g++, or set it to false")
    model.compile()
    return model
