"""Which samples a step sees: pure functions of (seed, step), so nothing is saved and any step can be asked for."""

from __future__ import annotations

import hashlib
import struct
from functools import lru_cache

import numpy as np
import numpy.typing as npt

STREAMS = 18  # of random bits that a step has: augment.py has ten, RandAugment one for each of up to 8 operations
STEPS_AT_ONCE = 16  # at most, whose samples are drawn together
Indices = npt.NDArray[np.int64]


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


def share(indices: Indices, which: int, ways: int) -> Indices:
    """Every `ways`-th index: the part of one rank or of one logical shard. Parts differ by at most one sample."""
    return indices[which::ways]


@lru_cache(maxsize=2 * STEPS_AT_ONCE)
def starts(seed: int, step: int) -> npt.NDArray[np.uint64]:
    """Where the counter of each stream begins in a step."""
    return np.random.Philox(key=[seed, step]).random_raw(STREAMS)


def counters(seed: int, steps: range, indices: Indices, stream: int = 0) -> npt.NDArray[np.uint64]:
    """64 random bits a sample as a function of (seed, step, index) and stream (SplitMix64, Steele et al. 2014).

    indices: as many of each step, one step behind the other.
    """
    begins = np.array([[starts(seed, step)[stream]] for step in steps])
    bits = (indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).reshape(len(steps), -1) + begins
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))).reshape(-1)


def drawn(seed: int, step: int, index: int) -> int:
    """63 random bits as a function of (seed, step, index); for one sample `counters` would take longer."""
    told = hashlib.blake2b(struct.pack("<3Q", seed, step, index), digest_size=8).digest()
    return int.from_bytes(told, "little") >> 1
