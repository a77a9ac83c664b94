"""Data sets in files: CIFAR-10, packed sets; and what is said when something is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from trained import pack_job

from training import data
from training.build import data_of
from training.config.data import Cifar10
from training.config.job import Job, JobError
from training.data.datasets import cifar
from training.data.images import DataError, ImageSet
from training.data.text import Documents, TextSet
from training.data.transforms.draw import Draw

RECORDS = 12


def cifar_folder(folder: Path) -> Path:
    """Small files of CIFAR-10's binary format: all pixels of a record are its label times ten, plus the channel."""
    for name in (*cifar.TRAINING, cifar.HELD_OUT):
        labels = np.arange(RECORDS, dtype=np.uint8)[:, None] % 10
        pixels = labels[:, :, None] * 10 + np.repeat(np.arange(3, dtype=np.uint8), 1024)[None, None]
        (folder / name).write_bytes(np.hstack([labels, pixels[:, 0]]).tobytes())
    return folder


def test_cifar_records_become_images_and_labels(tmp_path: Path):
    found = cifar.load(Cifar10(path=cifar_folder(tmp_path), global_batch=2), 1)

    images, labels = found.train.at(np.array([3, 25]), None)

    assert len(found.train) == 5 * RECORDS
    assert labels.tolist() == [3, 1]
    assert images[:, :, 31, 31].tolist() == [[30, 31, 32], [10, 11, 12]]
    assert images.dtype == torch.uint8


def test_cifar_is_normalised_a_channel_at_a_time(tmp_path: Path):
    found = cifar.load(Cifar10(path=cifar_folder(tmp_path), global_batch=2), 1)

    images, _ = found.evaluation(np.arange(RECORDS))

    assert images.mean(dim=(0, 2, 3)).abs().max() < 0.01
    assert images.std(dim=(0, 2, 3)) == pytest.approx([1, 1, 1], abs=0.01)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: (f / "data_batch_3.bin").unlink(), r"data_batch_3\.bin is missing; unpack"),
        (
            lambda f: (f / "test_batch.bin").write_bytes(bytes(4000)),
            r"cut short: 1 records of 3073 bytes and 927 bytes",
        ),
        (
            lambda f: (f / "test_batch.bin").write_bytes(b"\x0b" * 3073),
            r"record 0 has label 11, and there are 10 classes",
        ),
        (lambda f: (f / "data_batch_1.bin").write_bytes(b""), r"data_batch_1\.bin is cut short: 0 records"),
    ],
    ids=["missing", "truncated", "label", "empty"],
)
def test_a_damaged_cifar_file_is_named(damage: Callable[[Path], object], told: str, tmp_path: Path):
    damage(cifar_folder(tmp_path))

    with pytest.raises(DataError, match=told):
        cifar.load(Cifar10(path=tmp_path, global_batch=2), 1)


CLASSES = "data={kind='synthetic-text', global_batch=8, samples=40, held_out=8, length=16, classes=3}"
CHAIN = "data={kind='synthetic-text', global_batch=8, samples=40, held_out=8, length=16}"


@pytest.mark.parametrize(
    ("source", "model"),
    [("seed=1", "cnn"), (CLASSES, "text-encoder"), (CHAIN, "gpt")],
    ids=["images", "documents", "text"],
)
def test_a_packed_set_is_the_set_it_was_packed_from(source: str, model: str, small: Callable[..., Job], tmp_path: Path):
    job = small(source, f"model={{kind='{model}'}}")
    pack_job(job, tmp_path / "packed")
    table = f"data={{kind='packed', path='{tmp_path / 'packed'}', global_batch=8, length=16}}"
    found, again = data_of(job), data_of(small(table, f"model={{kind='{model}'}}"))

    for mine, theirs in zip(found.evaluation(np.arange(5)), again.evaluation(np.arange(5)), strict=True):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(
        found.training(Draw(1, 2), np.arange(5)), again.training(Draw(1, 2), np.arange(5)), strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("families", [np.arange(40) // 4, None], ids=["copies", "each its own"])
def test_copies_of_a_text_stay_known_in_a_packed_set(
    families: np.ndarray | None, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    whole = Documents(tokens=np.ones((40, 16), np.uint16), labels=np.arange(40) % 3, families=families)
    found = TextSet(train=whole, held_out=whole, vocabulary=256, length=16, classes=3, tokenizer="made by this")
    with monkeypatch.context() as patched:
        patched.setattr(data, "read", lambda *_: found)
        pack_job(small(), tmp_path / "packed")

    wanted = f"data={{kind='packed', path='{tmp_path / 'packed'}', global_batch=8}}"
    again = data_of(small(wanted, "model={kind='text-encoder'}"))
    packed = again.train

    assert isinstance(again, TextSet)
    assert again.tokenizer == "made by this"
    assert isinstance(packed, Documents)
    assert (packed.families is None) == (families is None)
    assert packed.fold(1, 5).tolist() == whole.fold(1, 5).tolist()


def test_a_fold_is_not_packed(small: Callable[..., Job], tmp_path: Path):
    with pytest.raises(JobError, match=r"data\.fold: is drawn where a packed set is read; leave it out here"):
        pack_job(small("data.fold=1"), tmp_path / "packed")

    assert not (tmp_path / "packed").exists()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: (f / "manifest.json").unlink(), "is no packed data set: it has no manifest.json"),
        (lambda f: (f / "manifest.json").write_text("{"), "manifest.json is damaged"),
        (lambda f: (f / "train-0.npy").unlink(), "train-0.npy is missing; pack the set again"),
        (lambda f: (f / "train-0.npy").write_bytes(bytes(100)), "train-0.npy has 100 of its 61568 bytes"),
        (
            lambda f: np.save(f / "train-1.npy", np.full(240, 12)),
            "train-1.npy: 240 of 240 labels cannot be: the first, at 0, is 12, and the number of classes is 10",
        ),
        (lambda f: (f / "manifest.json").write_text(json.dumps({"format": 9})), "is of format 9, this version reads 1"),
    ],
    ids=["no manifest", "damaged manifest", "missing", "truncated", "label", "format"],
)
def test_a_damaged_packed_set_is_named(
    damage: Callable[[Path], object], told: str, small: Callable[..., Job], tmp_path: Path
):
    folder = tmp_path / "packed"
    pack_job(small(), folder)
    damage(folder)

    with pytest.raises(DataError, match=told):
        data_of(small(f"data={{kind='packed', path='{folder}', global_batch=8}}"))


@pytest.mark.parametrize(("source", "model"), [(CLASSES, "text-encoder"), (CHAIN, "gpt")], ids=["documents", "text"])
def test_a_token_beyond_the_vocabulary_is_named_when_its_batch_is_drawn(
    source: str, model: str, small: Callable[..., Job], tmp_path: Path
):
    pack_job(small(source, f"model={{kind='{model}'}}"), tmp_path / "packed")
    tokens = np.load(tmp_path / "packed/train-0.npy")
    tokens.reshape(-1)[-48:] = 256  # three windows: each is moved at random
    np.save(tmp_path / "packed/train-0.npy", tokens)
    wanted = f"data={{kind='packed', path='{tmp_path / 'packed'}', length=16, global_batch=8}}"
    packed = data_of(small(wanted, f"model={{kind='{model}'}}"))

    packed.training(Draw(0, 0), np.arange(8))
    with pytest.raises(DataError, match="token 256 is beyond the vocabulary of 256: make the data set again"):
        packed.training(Draw(0, 0), np.arange(len(packed.train)))


def test_what_is_there_is_not_packed_over(small: Callable[..., Job], tmp_path: Path):
    with pytest.raises(DataError, match="is there already; name another folder"):
        pack_job(small(), tmp_path)


def test_changes_of_images_are_refused_for_packed_text(small: Callable[..., Job], tmp_path: Path):
    pack_job(small(CLASSES, "model={kind='text-encoder'}"), tmp_path / "packed")
    wanted = f"data={{kind='packed', path='{tmp_path / 'packed'}', length=16, global_batch=8}}"

    with pytest.raises(JobError, match="augment: changes images, and the data set has none"):
        data_of(small(wanted, "model={kind='text-encoder'}", "augment.flip=true"))


def test_a_fold_judges_by_a_fifth_of_the_training_set(small: Callable[..., Job]):
    whole, part = data_of(small()), data_of(small("data.fold=2"))
    text = data_of(small(CLASSES, "model={kind='text-encoder'}", "data.fold=0"))

    assert (len(part.train), len(part.held_out)) == (192, 48)
    assert isinstance(whole, ImageSet)
    both = torch.cat([part.train.at(np.arange(192), None)[0], part.held_out.at(np.arange(48), None)[0]])
    everything = whole.train.at(np.arange(240), None)[0]
    assert sorted(t.numpy().tobytes() for t in both) == sorted(t.numpy().tobytes() for t in everything)
    assert isinstance(text, TextSet)
    assert (len(text.train), len(text.held_out)) == (32, 8)
