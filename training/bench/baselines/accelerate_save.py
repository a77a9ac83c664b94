"""Hugging Face Accelerate's `save_state`: a turn is one save into a fresh folder."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable

from accelerate import Accelerator

from training.bench.baselines import serve
from training.bench.baselines.saving import after_a_step, timed
from training.config.job import Job


def runner_of(job: Job) -> Callable[[], float]:
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(*after_a_step(job))
    return timed(job, accelerator.save_state)


if __name__ == "__main__":
    serve(runner_of, "accelerate", "torch")
