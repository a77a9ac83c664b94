"""Made-up tokens that can be learned: documents in which a class's tokens are frequent, or a chain of tokens."""

from __future__ import annotations

import numpy as np

from training.config.data import SyntheticText
from training.data.text import Documents, Running, TextSet

FIRST = 4  # tokens below are left to padding and the like
OPENING = 2  # the token in front, [CLS] of a real vocabulary
OWN = 0.5  # share of a document's tokens that tell its class
NOISE = 0.1  # share of a chain's tokens that follow nothing


def load(wanted: SyntheticText, seed: int) -> TextSet:
    """The set of that seed: `wanted.samples` to train on and `wanted.held_out` more."""
    random = np.random.Generator(np.random.Philox(key=[seed, 0]))
    make = documents if wanted.classes else chain
    train, held_out = make(wanted, random)
    return TextSet(
        train=train, held_out=held_out, vocabulary=wanted.vocabulary, length=wanted.length, classes=wanted.classes
    )


def documents(wanted: SyntheticText, random: np.random.Generator) -> tuple[Documents, Documents]:
    count = wanted.samples + wanted.held_out
    labels = np.arange(count) % wanted.classes
    tokens = random.integers(FIRST, wanted.vocabulary, (count, wanted.length))
    own = FIRST + labels % (wanted.vocabulary - FIRST)
    tokens = np.where(random.random(tokens.shape) < OWN, own[:, None], tokens).astype(np.uint16)
    tokens[:, 0] = OPENING
    cuts = (slice(None, wanted.samples), slice(wanted.samples, None))
    train, held_out = (Documents(tokens=tokens[cut], labels=labels[cut]) for cut in cuts)
    return train, held_out


def chain(wanted: SyntheticText, random: np.random.Generator) -> tuple[Running, Running]:
    """Each token is followed by one and the same other, but for noise."""
    follows = random.permutation(wanted.vocabulary)
    first, last = ((n + 1) * wanted.length + 1 for n in (wanted.samples, wanted.held_out))
    tokens = random.integers(0, wanted.vocabulary, first + last).astype(np.uint16)
    free = random.random(len(tokens)) < NOISE
    for place in range(1, len(tokens)):
        if not free[place]:
            tokens[place] = follows[tokens[place - 1]]
    train, held_out = (Running(tokens=part, length=wanted.length) for part in (tokens[:first], tokens[first:]))
    return train, held_out
