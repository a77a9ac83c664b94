"""The training state as named tensors, restored bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler


class State:
    """Model, optimizer, loss scale and whatever else must survive, as one flat set of tensors by name.

    Everything else (learning rate, sample order, augmentation) is a function of the step and needs no saving.

    extra: further live tensors that are the same on every rank (an average of the weights); filled in place by `load`.
    shared, own: live tensors of the way of training, the same on every rank (PowerSGD's Q) and this rank's alone (what
    PowerSGD has yet to send).
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scaler: GradScaler,
        *,
        extra: Mapping[str, Tensor] | None = None,
        shared: Mapping[str, Tensor] | None = None,
        own: Mapping[str, Tensor] | None = None,
        rank: int = 0,
    ) -> None:
        self.model, self._optimizer, self._scaler = model, optimizer, scaler
        names = {parameter: name for name, parameter in model.named_parameters()}
        self._parameters = dict(model.named_parameters())
        self._names = [names[p] for group in optimizer.param_groups for p in group["params"]]
        self._shared = {f"extra.{name}": tensor for name, tensor in (shared or {}).items()}
        self._extra = {f"extra.{name}": tensor for name, tensor in (extra or {}).items()} | self._shared
        self._own = {f"rank.{rank}.{name}": tensor for name, tensor in (own or {}).items()}

    def tensors(self) -> dict[str, Tensor]:
        """The live tensors that all ranks share: `model.<name>`, `optimizer.<parameter>.<key>`, `scaler.<key>`,
        `extra.<name>`."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for place, values in self._optimizer.state_dict()["state"].items():
            state_tensors = {key: value for key, value in values.items() if isinstance(value, Tensor)}
            tensors |= {f"optimizer.{self._names[place]}.{key}": value for key, value in state_tensors.items()}
        tensors |= {f"scaler.{key}": torch.tensor(value) for key, value in self._scaler.state_dict().items()}
        return tensors | self._extra

    def own(self) -> dict[str, Tensor]:
        """The live tensors of this rank alone: `rank.<rank>.<name>`."""
        return self._own

    def of_each_rank(self) -> list[Tensor]:
        """The live tensors that ranks come to differ in, though all should save the same: what forward changes
        (BatchNorm's statistics), and the average of it."""
        buffers = dict(self.model.named_buffers())
        averages = (self._extra.get(f"extra.{name}") for name in buffers)
        return [*buffers.values(), *(tensor for tensor in averages if tensor is not None)]

    def changed_by_gradients(self) -> set[str]:
        """Names of what forward changes (BatchNorm's statistics), and what the way of training changes as it reduces
        gradients; all else changes only from the optimizer's step on."""
        return {f"model.{name}" for name, _ in self.model.named_buffers()} | self._shared.keys() | self._own.keys()

    def room(self, names: Mapping[str, torch.Size]) -> dict[str, Tensor]:
        """Tensors to read a checkpoint's values into, cut like the live ones, by its names and whole shapes; those of
        parameters that this rank does not hold are left out."""
        rooms = {f"model.{name}": torch.empty_like(tensor) for name, tensor in self.model.state_dict().items()}
        for name, shape in names.items():
            if name.startswith("optimizer."):
                parameter = self._parameters.get(parameter_of(name))
                if parameter is not None:
                    like = parameter.detach()
                    rooms[name] = torch.empty_like(like) if like.shape == shape else torch.empty(shape)
            elif name.startswith("extra.") and name in self._extra:
                rooms[name] = torch.empty_like(self._extra[name])
            elif name.startswith("scaler."):
                rooms[name] = torch.empty(shape)
        return rooms

    def misfit(self, shapes: Mapping[str, torch.Size]) -> str | None:
        """Why tensors of these names and whole shapes are not this model's and its optimizer's; None where they are."""
        for name, tensor in self.model.state_dict().items():
            if (saved := shapes.get(f"model.{name}")) != tensor.shape:
                said = "is missing" if saved is None else f"has the shape {list(saved)}"
                return f"model.{name} {said}, not {list(tensor.shape)}"
        for name, shape in shapes.items():
            parameter = self._parameters.get(parameter_of(name)) if name.startswith("optimizer.") else None
            if parameter is not None and shape not in (parameter.shape, torch.Size()):
                return f"{name} has the shape {list(shape)}, not {list(parameter.shape)}"
            if name.startswith("scaler.") and shape:
                return f"{name} has the shape {list(shape)}, and is one number"
        return None

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Puts values back. Raises RuntimeError where the names or shapes are those of another model."""
        names = {name: f"model.{name}" for name in self.model.state_dict()}
        self.model.load_state_dict({name: tensors[key] for name, key in names.items() if key in tensors})
        places = {name: place for place, name in enumerate(self._names)}
        state: dict[int, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer.") and parameter_of(name) in places:
                parameter, _, key = name.removeprefix("optimizer.").rpartition(".")
                state.setdefault(places[parameter], {})[key] = laid_out(tensor, self._parameters[parameter])
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})
        scale = {name.removeprefix("scaler."): t.item() for name, t in tensors.items() if name.startswith("scaler.")}
        if scale and self._scaler.is_enabled():
            self._scaler.load_state_dict(scale)
        for name, live in (*self._extra.items(), *self._own.items()):
            if name in tensors:
                live.copy_(tensors[name])


def parameter_of(name: str) -> str:
    """The parameter that an `optimizer.<parameter>.<key>` belongs to."""
    return name.removeprefix("optimizer.").rpartition(".")[0]


def laid_out(tensor: Tensor, parameter: Tensor) -> Tensor:
    """With the parameter's memory layout: fused optimizers walk both side by side."""
    if tensor.shape != parameter.shape or tensor.stride() == parameter.stride():
        return tensor
    return torch.empty_like(parameter, dtype=tensor.dtype, device=tensor.device).copy_(tensor).detach()
