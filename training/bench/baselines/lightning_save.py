"""Lightning's `Fabric.save`, which writes by the same code as `Trainer.save_checkpoint`: a turn is one save to a fresh
file."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable

from lightning.fabric import Fabric

from training.bench.baselines import serve
from training.bench.baselines.saving import after_a_step, timed
from training.config.job import Job


def runner_of(job: Job) -> Callable[[], float]:
    fabric = Fabric(accelerator="cpu", devices=1)
    model, optimizer = fabric.setup(*after_a_step(job))
    return timed(job, lambda file: fabric.save(file, {"model": model, "optimizer": optimizer}))


if __name__ == "__main__":
    serve(runner_of, "lightning", "torch")
