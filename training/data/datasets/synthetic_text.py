"""Synthetic tokens that can be learned: documents in which the tokens of a class are frequent, or a chain of tokens."""

from __future__ import annotations

import numpy as np

from training.config.data import SyntheticText
from training.data.text import Documents, Running, TextSet

FIRST = 4  # tokens below are left to padding and the like
OPENING = 2  # the token in front, [CLS] of a real vocabulary
OWN = 0.5  # share of a document's tokens that tell its class
NOISE = 0.1  # share of a chain's tokens that follow nothing


def load(config: SyntheticText, seed: int) -> TextSet:
    """The set of that seed: `config.samples` to train on and `config.held_out` more."""
    random = np.random.Generator(np.random.Philox(key=[seed, 0]))
    make = documents if config.classes else chain
    train, held_out = make(config, random)
    return TextSet(
        train=train, held_out=held_out, vocabulary=config.vocabulary, length=config.length, classes=config.classes
    )


def documents(config: SyntheticText, random: np.random.Generator) -> tuple[Documents, Documents]:
    count = config.samples + config.held_out
    labels = np.arange(count) % config.classes
    tokens = random.integers(FIRST, config.vocabulary, (count, config.length))
    own = FIRST + labels % (config.vocabulary - FIRST)
    tokens = np.where(random.random(tokens.shape) < OWN, own[:, None], tokens).astype(np.uint16)
    tokens[:, 0] = OPENING
    cuts = (slice(None, config.samples), slice(config.samples, None))
    train, held_out = (Documents(tokens=tokens[cut], labels=labels[cut]) for cut in cuts)
    return train, held_out


def chain(config: SyntheticText, random: np.random.Generator) -> tuple[Running, Running]:
    """Each token is followed by one and the same other, but for noise."""
    follows = random.permutation(config.vocabulary)
    first, last = ((n + 1) * config.length + 1 for n in (config.samples, config.held_out))
    tokens = random.integers(0, config.vocabulary, first + last).astype(np.uint16)
    free = random.random(len(tokens)) < NOISE
    for place in range(1, len(tokens)):
        if not free[place]:
            tokens[place] = follows[tokens[place - 1]]
    train, held_out = (Running(tokens=part, length=config.length) for part in (tokens[:first], tokens[first:]))
    return train, held_out
