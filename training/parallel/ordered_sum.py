"""A sum over the ranks in rank order: the same bits on every rank, in every run, however the numbers are split."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor


def ordered_sum(values: Tensor, group: dist.ProcessGroup | None, wire: torch.dtype | None = None) -> Tensor:
    """The sum of a flat tensor over a group (None: all ranks), in place.

    Each rank receives its slice from all, adds it up in rank order and sends the sum back: the bytes of a ring
    all-reduce, without its dependence on where a slice begins. wire: the type in which numbers travel; they are added
    up as they are stored.
    """
    world = dist.get_world_size(group)
    length = -(-values.numel() // world)
    sent = torch.zeros(world * length, dtype=wire or values.dtype, device=values.device)
    sent[: values.numel()] = values
    received = torch.empty_like(sent)
    dist.all_to_all_single(as_bytes(received), as_bytes(sent), group=group)
    rows = received.view(world, length).to(values.dtype)
    total = rows[0].clone()
    for row in rows[1:]:
        total += row
    dist.all_gather_into_tensor(as_bytes(sent), as_bytes(total.to(sent.dtype)), group=group)
    return values.copy_(sent[: values.numel()])


def as_bytes(tensor: Tensor) -> Tensor:
    """What travels has no type: a back end need not know bf16."""
    return tensor.view(torch.uint8)


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """One flat tensor with the numbers of all."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unflatten(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copies the numbers back."""
    for tensor, numbers in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(numbers.view(tensor.shape))
