"""Random numbers of training samples: a function of (seed, step, sample index) and of the change that draws them."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

# streams of random bits: each change draws from its own
SHIFT, WARP, FLIP, BRIGHTNESS, CONTRAST, SATURATION, MIX, SHARE, PLACE, CROP, RANDAUGMENT = range(11)
STREAMS = RANDAUGMENT + 8  # RandAugment draws from one stream for each of up to 8 operations
STEPS_AT_ONCE = 16  # at most, whose samples are drawn together
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """Where the random numbers of training samples come from: those of a step, or of `count` steps from `step` on, as
    many of each."""

    seed: int
    step: int
    count: int = 1

    def bits(self, stream: int, indices: Indices) -> npt.NDArray[np.uint64]:
        """64 random bits a sample."""
        return counters(self.seed, range(self.step, self.step + self.count), indices, stream)

    def uniform(self, stream: int, indices: Indices) -> npt.NDArray[np.float32]:
        """A number a sample, from 0 up to but not 1."""
        return (self.bits(stream, indices) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)


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
    digest = hashlib.blake2b(struct.pack("<3Q", seed, step, index), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
