"""Models by the name a job file gives them."""

from __future__ import annotations

import torch
from torch import nn

from training import config
from training.data.images import ImageSet
from training.models.cnn import Cnn
from training.models.resnet import resnet18, resnet50

RESNETS = {"resnet18": resnet18, "resnet50": resnet50}


def build(wanted: config.Cnn | config.ResNet, data: ImageSet, seed: int) -> nn.Module:
    """The model for these images, its weights drawn from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(wanted, config.Cnn):
            shape = {"channels": data.channels, "classes": data.classes, "image_size": data.image_size}
            return Cnn(**shape, width=wanted.width, norm=wanted.norm)
        return RESNETS[wanted.kind](channels=data.channels, classes=data.classes)


def memory_format(wanted: config.Cnn | config.ResNet) -> torch.memory_format:
    """Layout of weights and images: channels last is the faster one on CPUs and on tensor cores."""
    return torch.channels_last if wanted.channels_last else torch.contiguous_format
