"""MFU: the model's own arithmetic as a share of the device's peak (Chowdhery et al. 2022)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from training.data import DataSet
from training.data.transforms.draw import Draw
from training.optim.loss import cross_entropy

NODE = Path("/etc/gpufleet/node.json")  # facts about the node, written by gpu_node.yml


def of_sample(model: nn.Module, data: DataSet, seed: int) -> float:
    """Floating-point operations of a sample's forward and backward pass: matrix products, convolutions and attention.

    Two samples are counted, since BatchNorm refuses to train on one value a channel.
    """
    inputs, targets = data.training(Draw(seed, 0), np.arange(2))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with FlopCounterMode(display=False) as counter:
        cross_entropy(model(inputs).float(), targets).backward()
    model.zero_grad(set_to_none=True)
    model.load_state_dict(before)
    return counter.get_total_flops() / 2


def peak(compute: str, device: torch.device, node: Path = NODE) -> float | None:
    """Operations a second of this node's GPU, dense, by its group's `gpu_tflops`; None without a GPU or that fact."""
    if device.type != "cuda" or not node.is_file():
        return None
    tflops = json.loads(node.read_text()).get("group", {}).get("gpu_tflops", {}).get(compute)
    return tflops * 1e12 if tflops else None


def mfu(samples_per_second: float, per_sample: float, peak_per_device: float, devices: int) -> float:
    return samples_per_second * per_sample / (peak_per_device * devices)
