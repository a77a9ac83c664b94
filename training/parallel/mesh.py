"""The device mesh: a table of ranks in which rows share the batch and the ranks of a row share one model."""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from training.config import run
from training.config.data import Batching
from training.config.errors import refusal
from training.parallel.process_group import Ranks


def mesh(
    config: run.Fsdp | run.Tensor | run.Pipeline,
    ranks: Ranks,
    batching: Batching,
    *,
    clip_norm: float,
    start_seconds: int,
) -> DeviceMesh:
    """Rows ("data") share the batch, the ranks of a row ("model") share one copy of the model: neighbours, since the
    links within a node are the fastest. Raises JobError where the ranks, or the batch, cannot be laid out so."""
    key, across = model_ranks(config)
    batch = batching.global_batch
    if ranks.world % across:
        fitting = [n for n in range(2, ranks.world + 1) if ranks.world % n == 0]
        advice = f"set {' or '.join(map(str, fitting))}" if fitting else "start more ranks"
        raise refusal(f"parallel.{key}", f"{across} does not divide {ranks.world} ranks; {advice}")
    data = ranks.world // across
    if data > batch:
        raise refusal("data.global_batch", f"{batch} cannot be shared by {data} ranks")
    if isinstance(config, run.Pipeline):
        whole = data * config.micro_batches
        if batch % whole:
            product = f"{data} rows of ranks × {config.micro_batches} parallel.micro_batches = {whole}"
            raise refusal("data.global_batch", f"{batch} is not a multiple of {product}")
        if batching.micro_batch:
            raise refusal("data.micro_batch", "set it to 0: parallel.micro_batches splits the batch here")
    if clip_norm and across > 1:
        raise refusal("optimizer.clip_norm", f"{config.kind} has no norm over all gradients; use fsdp, or 0")
    table = init_device_mesh(ranks.device.type, (data, across), mesh_dim_names=("data", "model"))
    ranks.groups.extend(table.get_all_groups())
    ranks.wait_at_most(start_seconds)  # torch gives its own timeout to groups that it makes for a mesh
    return table


def model_ranks(config: run.Fsdp | run.Tensor | run.Pipeline) -> tuple[str, int]:
    """The key that says over how many ranks a copy of the model is spread (beside what FSDP does), and that number."""
    if isinstance(config, run.Tensor):
        return "ways", config.ways
    if isinstance(config, run.Pipeline):
        return "stages", config.stages
    return "kind", 1
