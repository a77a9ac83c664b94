"""Data sets, the order of their samples, and the batches a rank sees."""

from __future__ import annotations

from training import config
from training.data import mnist5k, synthetic
from training.data.images import ImageSet


def load(wanted: config.Mnist5k | config.Synthetic, seed: int) -> ImageSet:
    """The data set a job names, in memory; raises DataError where it cannot be had."""
    if isinstance(wanted, config.Mnist5k):
        return mnist5k.load()
    return synthetic.load(wanted, seed)
