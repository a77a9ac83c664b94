"""Data sets, the order of their samples, and the batches of a rank; `training.config.data.DATA_SETS` names the sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from training.config.data import DATA_SETS, FOLDS, Augment, Batching
from training.config.errors import refusal
from training.config.registry import builder
from training.data import images, text
from training.data.images import DataError, ImageSet
from training.data.text import TextSet

DataSet = ImageSet | TextSet


def load(config: Batching, augment: Augment, seed: int) -> DataSet:
    """The data set that a job names, or the fold of it; raises DataError where it cannot be read, JobError where it has
    no images for `augment` to change."""
    data = read(config, seed)
    if config.fold is not None:
        fold = images.fold if isinstance(data, ImageSet) else text.fold
        data = fold(data, config.fold, FOLDS)  # pyright: ignore[reportArgumentType]
    if isinstance(data, ImageSet):
        data = replace(data, augment=augment)
    elif augment != Augment():  # of a packed set only its folder knows
        raise refusal("augment", "changes images, and the data set has none")
    if len(data.held_out) == 0:
        raise DataError(f"data.kind {config.kind} has no held-out samples to evaluate on")
    return data


def read(config: Batching, seed: int) -> DataSet:
    """The data set in full. seed: of the made-up ones."""
    return builder(DATA_SETS, config)(config, seed)


def recipe(of_job: dict[str, Any], data: DataSet) -> dict[str, Any]:
    """What decides the trained weights, as flat dotted keys: a checkpoint is only resumed with the same recipe. Files
    count by their content, wherever they are.

    of_job: `Job.recipe()`.
    """
    tokenizer = data.tokenizer if isinstance(data, TextSet) else None
    return {**of_job, "data.tokenizer": tokenizer}
