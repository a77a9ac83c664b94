"""One description of how ranks stand: a table with the data down and the model across."""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from training.config import run
from training.config.job import Job
from training.parallel.process_group import Ranks


def mesh(job: Job, ranks: Ranks) -> DeviceMesh:
    """Rows ("data") share the batch, the ranks of a row ("model") share one copy of the model: neighbours, since the
    links within a node are the fastest. Raises JobError where the ranks, or the batch, cannot be laid out so."""
    key, across = models_width(job)
    if ranks.world % across:
        fitting = [n for n in range(2, ranks.world + 1) if ranks.world % n == 0]
        advice = f"set {' or '.join(map(str, fitting))}" if fitting else "start more ranks"
        raise job.refusal(f"parallel.{key}", f"{across} does not divide {ranks.world} ranks; {advice}")
    data = ranks.world // across
    if data > job.data.global_batch:
        raise job.refusal("data.global_batch", f"{job.data.global_batch} cannot be shared by {data} ranks")
    if isinstance(job.parallel, run.Pipeline):
        whole = data * job.parallel.micro_batches
        if job.data.global_batch % whole:
            product = f"{data} rows of ranks × {job.parallel.micro_batches} parallel.micro_batches = {whole}"
            raise job.refusal("data.global_batch", f"{job.data.global_batch} is no multiple of {product}")
        if job.data.micro_batch:
            raise job.refusal("data.micro_batch", "set it to 0: parallel.micro_batches cuts the batch here")
    if job.optimizer.clip_norm and across > 1:
        raise job.refusal("optimizer.clip_norm", f"{job.parallel.kind} has no norm over all gradients; use fsdp, or 0")
    made = init_device_mesh(ranks.device.type, (data, across), mesh_dim_names=("data", "model"))
    ranks.ways.extend(made.get_all_groups())
    ranks.wait_at_most(job.health.start_seconds)  # torch gives its own patience to groups that it makes for a mesh
    return made


def models_width(job: Job) -> tuple[str, int]:
    """The key that says so, and over how many ranks a copy of the model is spread (beside what FSDP does)."""
    if isinstance(job.parallel, run.Tensor):
        return "ways", job.parallel.ways
    if isinstance(job.parallel, run.Pipeline):
        return "stages", job.parallel.stages
    return "kind", 1
