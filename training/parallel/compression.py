"""Gradients sent in fewer bytes: in half precision, or as thin matrices (PowerSGD)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from training.parallel.base import Parallel
from training.parallel.ordered_sum import flatten, ordered_sum, unflatten
from training.parallel.process_group import Ranks

HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Flat(Parallel):
    """After the last part all gradients travel in one piece. wire: their type on the way (None: their own)."""

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int, wire: torch.dtype | None) -> None:
        super().__init__(model, ranks, global_batch)
        self._wire = wire
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def gradients(self) -> list[Tensor]:
        """Those of this rank; zeros where a parameter had no part in the loss."""
        for parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return [parameter.grad for parameter in self._parameters if parameter.grad is not None]

    def reduce(self, step: int) -> None:
        all_gradients = self.gradients()
        unflatten(ordered_sum(flatten(all_gradients), None, self._wire), all_gradients)


class PowerSgd(Flat):
    """A gradient matrix M travels as P = M·Q and Q = Mᵀ·P with `rank` columns each (T. Vogels, S. P. Karimireddy,
    M. Jaggi, PowerSGD, NeurIPS 2019, algorithm 1). What a rank's part of P·Qᵀ misses is added to its next gradient.

    Vectors, and matrices that would not shrink, travel whole. Both products of all matrices travel in one piece each,
    in an order that is fixed; Q starts from a seed, so that a run is a function of its job.

    Q is kept transposed: then every product walks along the rows of M. MKL takes 5 times as long for M @ Q of four
    columns as for M @ Qᵀ.T. Both Qᵀ and what was missed have a parameter's shape and layout, so that a checkpoint does
    not depend on the layout.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int, rank: int, seed: int) -> None:
        super().__init__(model, ranks, global_batch, None)
        random = torch.Generator().manual_seed(seed)
        self._thin: dict[int, Tensor] = {}
        self._missed: dict[int, Tensor] = {}
        for place, parameter in enumerate(self._parameters):
            rows = parameter.shape[0] if parameter.ndim > 1 else 1
            columns = parameter.numel() // rows
            if (rows + columns) * rank < rows * columns:
                like = parameter.detach()
                drawn = torch.randn(like[:rank].shape, generator=random)
                self._thin[place] = torch.empty_like(like[:rank]).copy_(drawn)
                self._missed[place] = torch.zeros_like(like)

    def shared(self) -> Mapping[str, Tensor]:
        return {f"powersgd.q.{place}": q for place, q in self._thin.items()}

    def own(self) -> Mapping[str, Tensor]:
        return {f"powersgd.missed.{place}": missed for place, missed in self._missed.items()}

    @torch.no_grad()
    def reduce(self, step: int) -> None:
        all_gradients = self.gradients()
        whole = [gradient for place, gradient in enumerate(all_gradients) if place not in self._missed]
        gradients = [matrix(all_gradients[place]) for place in self._missed]
        residuals, thin = ([matrix(tensor) for tensor in which.values()] for which in (self._missed, self._thin))
        left = [m.add_(gradient) @ q.T for m, gradient, q in zip(residuals, gradients, thin, strict=True)]
        unflatten(ordered_sum(flatten([*left, *whole]), None), [*left, *whole])
        bases = [torch.linalg.qr(p).Q for p in left]
        for m, p, q in zip(residuals, bases, thin, strict=True):
            torch.mm(p.T, m, out=q)
            m.addmm_(p, q, alpha=-1)  # what this rank's own part of the product misses
        if thin:
            unflatten(ordered_sum(flatten(thin), None), thin)
        for gradient, p, q in zip(gradients, bases, thin, strict=True):
            torch.mm(p, q, out=gradient)


def matrix(tensor: Tensor) -> Tensor:
    """A view of a parameter's gradient with its first dimension for rows; the columns are in memory order."""
    lying = tensor if tensor.is_contiguous() else tensor.permute(0, 2, 3, 1)  # channels last
    return lying.view(len(tensor), -1)
