"""Which samples a step trains on: pure functions of (seed, step), so a checkpoint needs no sampler state."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from training.data.transforms.draw import Indices


@lru_cache(maxsize=4)
def permutation(seed: int, epoch: int, samples: int) -> Indices:
    """The order of an epoch: samples sorted by a counter-based random number each.

    Philox's raw stream is fixed by numpy's compatibility policy (NEP 19), unlike `Generator.permutation`.
    """
    keys = np.random.Philox(key=[seed, epoch]).random_raw(samples)
    order = np.argsort(keys, kind="stable")
    order.flags.writeable = False
    return order


def global_batch(seed: int, step: int, samples: int, batch: int) -> Indices:
    """Sample indices of a step (from 0): a slice of its epoch's permutation, the incomplete last batch left out."""
    epoch, place = divmod(step, samples // batch)
    return permutation(seed, epoch, samples)[place * batch : (place + 1) * batch]


def share(indices: Indices, shard: int, shards: int) -> Indices:
    """Every `ways`-th index: the part of one rank or of one logical shard. Parts differ by at most one sample."""
    return indices[shard::shards]
