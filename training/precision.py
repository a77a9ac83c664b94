"""The numbers a step computes with: fp32, TF32, or bf16 and fp16 by autocast with fp32 parameters."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.amp.autocast_mode import autocast
from torch.amp.grad_scaler import GradScaler

from training.config.errors import refusal

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """Autocast, and loss scaling where the format needs it (fp16: its smallest normal number is 6e-5).

    compute: fp32, tf32, bf16 or fp16; raises JobError where the device cannot. deterministic: only kernels that compute
    the same bits every time.
    """

    def __init__(self, compute: str, device: torch.device, *, deterministic: bool) -> None:
        self.compute = compute
        if why := unsupported(compute, device):
            raise refusal("precision.compute", why)
        use_deterministic_kernels(enabled=deterministic)
        if device.type == "cuda":
            precise = "tf32" if self.compute == "tf32" else "ieee"
            torch.backends.cuda.matmul.fp32_precision = precise
            torch.backends.cudnn.fp32_precision = precise  # pyright: ignore[reportAttributeAccessIssue]
        self._device = device.type
        self.scaler = GradScaler(device.type, enabled=self.compute == "fp16")

    def autocast(self) -> AbstractContextManager[object]:
        """Around forward and loss."""
        half = HALF.get(self.compute)
        return nullcontext() if half is None else autocast(self._device, dtype=half)

    def backward(self, loss: Tensor) -> None:
        self.scaler.scale(loss).backward()

    def step(self, optimizer: torch.optim.Optimizer, clip_norm: float) -> None:
        """The optimizer's step, its gradients cut down to a norm of at most `clip_norm` where that is not 0; left out,
        with a smaller scale from then on, where fp16 gradients overflowed."""
        if clip_norm:
            self.scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip_norm)
        self.scaler.step(optimizer)
        self.scaler.update()


def use_deterministic_kernels(*, enabled: bool) -> None:
    """Whether only kernels are used that compute the same bits every time; torch raises where an operation has none.

    The workspaces are those with which cuBLAS gives the same bits (its documentation, "Results Reproducibility"); it
    reads them at its first call, and torch refuses to compute without them.
    """
    if enabled:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(enabled)


def unsupported(compute: str, device: torch.device) -> str | None:
    """Why the device cannot compute so, and what to use instead."""
    if compute == "tf32" and device.type != "cuda":
        return "tf32 needs a CUDA device; use fp32 or bf16"
    if compute not in ("bf16", "tf32") or device.type != "cuda":
        return None
    if torch.cuda.is_bf16_supported(including_emulation=False):  # TF32 came with it
        return None
    name = torch.cuda.get_device_name(device)
    return f"{compute} needs a GPU of compute capability 8.0 (A100) or later, which {name} is not; use fp16 or fp32"
