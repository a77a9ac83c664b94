"""The state of training as named tensors: taken out into kept buffers with one copy, put back bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler


class State:
    """Model, optimizer and loss scale as one flat set of tensors by name.

    Everything else (learning rate, sample order, augmentation) is a function of the step and needs no saving.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: GradScaler) -> None:
        self.model, self._optimizer, self._scaler = model, optimizer, scaler
        names = {parameter: name for name, parameter in model.named_parameters()}
        self._names = [names[p] for group in optimizer.param_groups for p in group["params"]]
        self._kept: dict[str, Tensor] = {}

    def tensors(self) -> dict[str, Tensor]:
        """The live tensors: `model.<name>`, `optimizer.<parameter>.<key>`, `scaler.<key>`."""
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for place, values in self._optimizer.state_dict()["state"].items():
            kept = {key: value for key, value in values.items() if isinstance(value, Tensor)}
            found |= {f"optimizer.{self._names[place]}.{key}": value for key, value in kept.items()}
        return found | {f"scaler.{key}": torch.tensor(value) for key, value in self._scaler.state_dict().items()}

    def snapshot(self) -> dict[str, Tensor]:
        """A copy in CPU memory, in buffers that are kept and used again by the next call; waits for the device."""
        live = self.tensors()
        if self._kept.keys() != live.keys():
            self._kept = {name: buffer_for(tensor) for name, tensor in live.items()}
        copies, originals = list(self._kept.values()), [tensor.detach() for tensor in live.values()]
        torch._foreach_copy_(copies, originals, non_blocking=True)  # pyright: ignore[reportPrivateImportUsage]
        if torch.cuda.is_available():
            torch.cuda.current_stream().synchronize()
        return self._kept

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Puts a snapshot back. Raises RuntimeError where the names or shapes are those of another model."""
        model = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        self.model.load_state_dict(model)
        places = {name: place for place, name in enumerate(self._names)}
        state: dict[int, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                parameter, _, key = name.removeprefix("optimizer.").rpartition(".")
                state.setdefault(places[parameter], {})[key] = tensor
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})
        scale = {name.removeprefix("scaler."): t.item() for name, t in tensors.items() if name.startswith("scaler.")}
        if scale and self._scaler.is_enabled():
            self._scaler.load_state_dict(scale)


def buffer_for(tensor: Tensor) -> Tensor:
    """A CPU tensor of the same shape and layout; page-locked where the copy comes from a GPU."""
    return torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)
