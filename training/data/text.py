"""Text sets: labelled documents of one length, or running text in windows for next-token prediction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.config.data import Content
from training.data.images import DataError
from training.data.sampler import permutation
from training.data.transforms.draw import PLACE, Draw, Indices

PADDING = 0  # fills a document up to its set's length
ROUND = 16  # documents of a batch are cut behind the longest, at a multiple of this


class TextSource(Protocol):
    """Samples by index."""

    def __len__(self) -> int: ...

    def at(self, indices: Indices, draw: Draw | None) -> tuple[Tensor, Tensor]:
        """Tokens int64 [samples, tokens] and labels [samples], or next tokens [samples, tokens]."""
        ...


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Tokens [samples, length], padded at the end, and labels [samples].

    families: a number from 0 on of each sample [samples], the same for copies of one text; without it each sample is a
    text of its own.
    """

    tokens: npt.NDArray[np.uint16]
    labels: npt.NDArray[np.int64]
    families: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, which: npt.NDArray[np.bool_]) -> Documents:
        """Those of the mask [samples]."""
        families = None if self.families is None else self.families[which]
        return Documents(tokens=self.tokens[which], labels=self.labels[which], families=families)

    def fold(self, number: int, folds: int) -> npt.NDArray[np.bool_]:
        """The mask [samples] of one part in `folds`, drawn at random; the copies of a text lie in one part."""
        families = np.arange(len(self)) if self.families is None else self.families
        return (permutation(folds, 0, families.max(initial=-1) + 1) % folds == number)[families]

    def at(self, indices: Indices, draw: Draw | None) -> tuple[Tensor, Tensor]:
        tokens = self.tokens[indices]
        longest = int((tokens != PADDING).sum(axis=1).max())
        tokens = tokens[:, : -(-max(longest, 1) // ROUND) * ROUND]  # empty texts are padding, not nothing
        return torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(self.labels[indices])


@dataclass(frozen=True, kw_only=True)
class Running:
    """One long text, mapped or in memory, in windows of `length` tokens; while training each window's start is moved
    at random by less than a window, so that an epoch is never cut like the one before."""

    tokens: npt.NDArray[np.unsignedinteger]
    length: int

    def __len__(self) -> int:
        return max(0, (len(self.tokens) - 1) // self.length - 1)

    def at(self, indices: Indices, draw: Draw | None) -> tuple[Tensor, Tensor]:
        starts = indices * self.length
        if draw is not None:
            starts = starts + (draw.bits(PLACE, indices) % np.uint64(self.length)).astype(np.int64)
        window = torch.from_numpy(self.tokens[starts[:, None] + np.arange(self.length + 1)].astype(np.int64))
        return window[:, :-1].contiguous(), window[:, 1:].contiguous()


@dataclass(frozen=True, kw_only=True)
class TextSet:
    """A training set and held-out text. classes: 0 for next-token prediction. tokenizer: sha256 of the tokenizer, None
    where tokens are bytes or drawn.

    A batch with a token beyond the vocabulary is a DataError: a GPU would only fail with an assertion, steps later.
    """

    train: TextSource
    held_out: TextSource
    vocabulary: int
    length: int
    classes: int
    tokenizer: str | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def content(self) -> Content:
        return "documents" if self.classes else "running text"

    @property
    def sample_values(self) -> int:
        """How many tokens a sample is."""
        return self.length

    def to(self, device: torch.device) -> TextSet:
        return replace(self, device=device)

    def training(self, draw: Draw, indices: Indices) -> tuple[Tensor, Tensor]:
        """A training batch: tokens, and labels or next tokens."""
        return self._checked(self.train.at(indices, draw))

    def evaluation(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """The same of the held-out text."""
        return self._checked(self.held_out.at(indices, None))

    def _checked(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The batch, on the device."""
        largest = max(int(tokens.max()) for tokens in (batch[:1] if self.classes else batch))
        if largest >= self.vocabulary:
            raise DataError(f"token {largest} is beyond the vocabulary of {self.vocabulary}: make the data set again")
        if self.device.type != "cuda":
            return batch
        tokens, answers = (t.pin_memory().to(self.device, non_blocking=True) for t in batch)
        return tokens, answers


def fold(data: TextSet, number: int, folds: int) -> TextSet:
    """A set judged by one part in `folds` of the training documents, drawn at random, or of its running text."""
    train = data.train
    if isinstance(train, Documents):
        judged = train.fold(number, folds)
        parts = (train.only(which) for which in (~judged, judged))
    else:
        assert isinstance(train, Running)
        first, last = (len(train.tokens) * n // folds for n in (number, number + 1))
        rest = np.concatenate([train.tokens[:first], train.tokens[last:]])
        parts = (Running(tokens=part, length=train.length) for part in (rest, train.tokens[first:last]))
    training, held_out = parts
    return replace(data, train=training, held_out=held_out)
