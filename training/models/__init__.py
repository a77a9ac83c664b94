"""The models; `training.config.model.MODELS` says which one a job file names."""

from __future__ import annotations

import torch
from torch import nn

from training.config.errors import refusal
from training.config.model import MODELS, Model
from training.config.registry import builder
from training.data import DataSet, ImageSet
from training.models.weights import freeze, load_weights


def build(config: Model, data: DataSet, seed: int) -> nn.Module:
    """The model for this data: its weights drawn from the seed or read from the job's file, some of them frozen.

    Raises JobError where model, data and weights do not fit together.
    """
    if isinstance(data, ImageSet) != (config.reads == "images"):
        samples = "images" if isinstance(data, ImageSet) else "text"
        raise refusal("model.kind", f"{config.kind} cannot read {samples}, which the data set holds")
    if data.content != config.reads:
        raise refusal("model.kind", f"{config.kind} does not fit the data set: {data.classes} classes of text")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = builder(MODELS, config)(config, data)
    load_weights(model, config)
    freeze(model, config.freeze)
    return model
