"""Pretrained weights from a file, and layers that are frozen."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor, nn

from training import strict
from training.config.errors import refusal
from training.config.model import Model

HEADS = ("fc.", "classifier.")  # the last layers of the models: as many outputs as the data has classes
PLACES = "bert.embeddings.position_embeddings.weight"
UNUSED = ("cls.", "embeddings.position_ids")  # of BERT's pre-training, and a constant of older files
# What torch's reader raises for files that are truncated or forged.
BROKEN = (OSError, RuntimeError, UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError)
SHOWN = 3  # names of a list in a message


def load_weights(model: nn.Module, config: Model) -> None:
    """Fills the model from `model.weights`, where that is set; a last layer that the file lacks, or has for other
    classes, keeps its fresh weights.

    Raises JobError with the names that are missing, that are too many, or whose shapes differ.
    """
    path = config.weights
    if path is None:
        return
    own = model.state_dict()
    tensors = to_model_names(read(path), own)
    heads = {n for n in own if n.startswith(HEADS) and (n not in tensors or tensors[n].shape != own[n].shape)}
    tensors = {name: tensor for name, tensor in tensors.items() if name not in heads}
    faults = {
        "missing": own.keys() - tensors.keys() - heads,
        "unexpected": tensors.keys() - own.keys(),
        "of another shape": {name for name in own.keys() & tensors.keys() if own[name].shape != tensors[name].shape},
    }
    mismatches = [f"{len(names)} {fault} ({some(names)})" for fault, names in faults.items() if names]
    if mismatches:
        raise refusal("model.weights", f"{path} does not fit {config.kind}: {'; '.join(mismatches)}")
    model.load_state_dict(tensors | {name: own[name] for name in heads})


def to_model_names(tensors: dict[str, Tensor], own: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file under the names that the model has for them.

    Of Hugging Face's BERTs some files hold the encoder alone and leave out its prefix, and those that were TensorFlow's
    (bert-base-uncased) call a norm's weight and bias gamma and beta. Places beyond the texts' length are left out.
    """
    prefix = "bert." if PLACES in own and PLACES.removeprefix("bert.") in tensors else ""
    renamed = {
        prefix + name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in tensors.items()
        if not name.removeprefix("bert.").startswith(UNUSED)
    }
    if PLACES in own and PLACES in renamed:
        renamed[PLACES] = renamed[PLACES][: len(own[PLACES])]
    return renamed


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, or of a .pt file in which there is nothing else."""
    from safetensors import SafetensorError  # here: a node without it still runs every job with fresh weights
    from safetensors.torch import load_file

    try:
        with strict.regular(path, follow=True) as file:
            if path.suffix == ".safetensors":
                return load_file(path)
            tensors = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise refusal("model.weights", f"{path} does not exist") from error
    except (*BROKEN, SafetensorError) as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise refusal("model.weights", f"{path} holds no weights that can be read: {why}") from error
    if not isinstance(tensors, dict) or not all(isinstance(n, str) and plain(tensor) for n, tensor in tensors.items()):
        raise refusal("model.weights", f"{path} holds more than tensors by name: save model.state_dict() alone")
    return tensors


def plain(value: object) -> bool:
    """Whether it is a tensor of numbers in memory: none that is sparse, quantised, or of a kind with methods of its
    own."""
    if type(value) not in (Tensor, nn.Parameter):
        return False
    assert isinstance(value, Tensor)
    return value.layout is torch.strided and value.device.type == "cpu" and not value.is_quantized


def some(names: set[str]) -> str:
    shown = sorted(names)[:SHOWN]
    return ", ".join(shown) + (", …" if len(names) > SHOWN else "")


class FrozenBatchNorm(nn.BatchNorm2d):
    """Normalises by the statistics it was loaded with, while training too."""

    def train(self, mode: bool = True) -> FrozenBatchNorm:
        super().train(False)
        return self


def freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Leaves the parameters whose names match out of training, and the statistics of such norms as they are."""
    names = [name for name, _ in model.named_parameters()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise refusal("model.freeze", f"{pattern!r} matches no parameter; there are {', '.join(names[:SHOWN])}, …")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(fnmatchcase(name, pattern) for pattern in patterns))
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise refusal("model.freeze", "leaves no parameter to train")
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and not module.weight.requires_grad:
            module.__class__ = FrozenBatchNorm
            module.train(False)
