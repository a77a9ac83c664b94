"""Data sets, the order of their samples, and the batches a rank sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from training.config import data as wanted
from training.config.data import Augment
from training.config.job import Job
from training.data import images, text
from training.data.images import DataError, ImageSet
from training.data.text import TextSet

DataSet = ImageSet | TextSet


def load(job: Job) -> DataSet:
    """The data set a job names, or the fold of it; raises DataError where it cannot be had."""
    found = read(job)
    if job.data.fold is not None:
        part = images.fold if isinstance(found, ImageSet) else text.fold
        found = part(found, job.data.fold, wanted.FOLDS)  # pyright: ignore[reportArgumentType]
    if isinstance(found, ImageSet):
        found = replace(found, augment=job.augment)
    elif job.augment != Augment():  # of a packed set only its folder knows
        raise job.refusal("augment", "changes images, and the data set has none")
    if len(found.held_out) == 0:
        raise DataError(f"data.kind {job.data.kind} has no held-out samples to judge by")
    return found


def recipe(job: Job, found: DataSet) -> dict[str, Any]:
    """What decides the trained weights, as flat dotted keys: a checkpoint is only resumed with the same recipe. Files
    count by their content, wherever they lie."""
    tokenizer = found.tokenizer if isinstance(found, TextSet) else None
    return {**job.recipe(), "data.tokenizer": tokenizer}


def read(job: Job) -> DataSet:  # noqa: PLR0911 (a reader a kind)
    """The data set in full; each kind's reader is imported when it is asked for."""
    match job.data:
        case wanted.Mnist5k():
            from training.data.datasets import mnist5k

            return mnist5k.load()
        case wanted.Synthetic():
            from training.data.datasets import synthetic

            return synthetic.load(job.data, job.seed)
        case wanted.Cifar10():
            from training.data.datasets import cifar

            return cifar.load(job.data.path)
        case wanted.ImageFolder():
            from training.data.datasets import imagefolder

            return imagefolder.load(job.data)
        case wanted.Packed():
            from training.data.datasets import packed

            return packed.load(job.data)
        case wanted.Spam():
            from training.data.datasets import spam

            return spam.load(job.data)
        case wanted.Text():
            from training.data.datasets import text_corpora

            return text_corpora.load(job.data)
        case wanted.SyntheticText():
            from training.data.datasets import synthetic_text

            return synthetic_text.load(job.data, job.seed)
