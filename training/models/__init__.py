"""Models by the name a job file gives them."""

from __future__ import annotations

import torch
from torch import nn

from training.config import model as wanted
from training.config.job import Job
from training.data import DataSet, ImageSet
from training.models.bert import TextEncoder
from training.models.cnn import Cnn
from training.models.gpt import Gpt
from training.models.resnet import resnet18, resnet50
from training.models.weights import freeze, load_weights

RESNETS = {"resnet18": resnet18, "resnet50": resnet50}
# Halved four times, 17 pixels are 2 before the last stage's stride. Of a 3 × 3 convolution that strides over a single
# pixel oneDNN leaves the bf16 gradient partly unwritten (torch 2.15 on a CPU with AMX): it is what the memory held.
RESNET_LEAST = 17


def build(job: Job, data: DataSet) -> nn.Module:
    """The model for this data: its weights drawn from the seed or read from the job's file, some of them frozen.

    Raises JobError where model, data and weights do not fit together.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)
        model = fresh(job, data)
    if job.model.weights is not None:
        load_weights(model, job)
    freeze(model, job)
    return model


def fresh(job: Job, data: DataSet) -> nn.Module:
    asked = job.model
    if isinstance(data, ImageSet) != isinstance(asked, wanted.IMAGES):
        has = "images" if isinstance(data, ImageSet) else "text"
        raise job.refusal("model.kind", f"{asked.kind} cannot read {has}, which the data set holds")
    if isinstance(data, ImageSet):
        assert isinstance(asked, wanted.Cnn | wanted.ResNet)
        shape = {"channels": data.channels, "classes": data.classes}
        if isinstance(asked, wanted.Cnn):
            return Cnn(**shape, image_size=data.image_size, width=asked.width, norm=asked.norm)
        if data.image_size < RESNET_LEAST:
            less = f"is less than the {RESNET_LEAST} pixels that {asked.kind} needs: it would stride over single pixels"
            raise job.refusal("data.image_size", f"{less}; model.kind = cnn takes small images")
        return RESNETS[asked.kind](**shape)
    assert isinstance(asked, wanted.TextEncoder | wanted.Gpt)
    if isinstance(asked, wanted.Gpt) == bool(data.classes):
        raise job.refusal("model.kind", f"{asked.kind} does not fit the data set: {data.classes} classes of text")
    shape = {"layers": asked.layers, "heads": asked.heads, "width": asked.width}
    if isinstance(asked, wanted.Gpt):
        return Gpt(vocabulary=data.vocabulary, **shape, dropout=asked.dropout)
    sizes = {"vocabulary": data.vocabulary, "length": data.length, "classes": data.classes}
    return TextEncoder(**sizes, **shape, dropout=asked.dropout, pooling=asked.pooling)
