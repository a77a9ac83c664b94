"""Data sets in files: CIFAR-10, image folders, packed sets; and what is said when something is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image
from trained import Crash, CrashAt

from training import data
from training.config import Job
from training.data import cifar, dali, imagefolder, pack
from training.data.augment import Draw
from training.data.images import DataError, ImageSet
from training.data.text import TextSet
from training.loop import train
from training.wanted.data import ImageFolder

RECORDS = 12


def cifar_folder(folder: Path) -> Path:
    """Small files of CIFAR-10's binary format: all pixels of a record are its label times ten, plus the channel."""
    for name in (*cifar.TRAINING, cifar.HELD_OUT):
        labels = np.arange(RECORDS, dtype=np.uint8)[:, None] % 10
        pixels = labels[:, :, None] * 10 + np.repeat(np.arange(3, dtype=np.uint8), 1024)[None, None]
        (folder / name).write_bytes(np.hstack([labels, pixels[:, 0]]).tobytes())
    return folder


def image_folder(folder: Path, classes: tuple[str, ...] = ("cat", "dog")) -> Path:
    """Pictures wider than high, one colour a class, in both formats."""
    for part in ("train", "val"):
        for number, name in enumerate(classes):
            (folder / part / name).mkdir(parents=True)
            for picture in range(4):
                suffix = "jpg" if picture % 2 else "png"
                image = Image.new("RGB", (60, 40), (100 * number, 50, 10 * picture))
                image.save(folder / part / name / f"{picture}.{suffix}")
    return folder


def test_cifar_records_become_images_and_labels(tmp_path: Path):
    found = cifar.load(cifar_folder(tmp_path))

    images, labels = found.train.at(np.array([3, 25]), None)

    assert len(found.train) == 5 * RECORDS
    assert labels.tolist() == [3, 1]
    assert images[:, :, 31, 31].tolist() == [[30, 31, 32], [10, 11, 12]]
    assert images.dtype == torch.uint8


def test_cifar_is_normalised_a_channel_at_a_time(tmp_path: Path):
    found = cifar.load(cifar_folder(tmp_path))

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
        cifar.load(tmp_path)


NO_DALI = pytest.mark.skipif(not dali.installed(), reason="NVIDIA DALI is an option: `make dali`")
EITHER = pytest.mark.parametrize("decoder", ["pillow", pytest.param("dali", marks=NO_DALI)])


def folder_set(path: Path, decoder: Literal["pillow", "dali"] = "pillow", unreadable: int = 0) -> ImageSet:
    wanted = ImageFolder(path=path, global_batch=2, image_size=16, unreadable=unreadable, decoder=decoder)
    return imagefolder.load(wanted)


@EITHER
def test_an_image_folder_has_a_class_a_folder(decoder: Literal["pillow", "dali"], tmp_path: Path):
    found = folder_set(image_folder(tmp_path), decoder)

    images, labels = found.held_out.at(np.array([0, 5]), None)

    assert (found.classes, len(found.train)) == (2, 8)
    assert labels.tolist() == [0, 1]
    assert images.shape == (2, 3, 16, 16)
    assert images[:, 0, 8, 8].tolist() == pytest.approx([0, 100], abs=2)


def gradients(folder: Path) -> Path:
    """An image folder whose training pictures tell by their pixels which part of them is seen."""
    image_folder(folder)
    rows, columns = np.mgrid[:40, :60] * 4
    for path in folder.glob("train/*/*"):
        Image.fromarray(np.stack([rows, columns, 0 * rows], axis=-1).astype(np.uint8)).save(path, quality=95)
    return folder


@EITHER
def test_a_training_crop_depends_on_its_number_alone(decoder: Literal["pillow", "dali"], tmp_path: Path):
    found = folder_set(gradients(tmp_path), decoder)

    both, _ = found.train.at(np.array([2, 6]), Draw(1, 5))
    alone, _ = found.train.at(np.array([6]), Draw(1, 5))

    assert torch.equal(both[1:], alone)
    assert not torch.equal(both[0], both[1])


@EITHER
def test_an_unreadable_image_is_named_counted_and_replaced(
    decoder: Literal["pillow", "dali"], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    image_folder(tmp_path)
    (tmp_path / "train/cat/1.jpg").write_bytes(b"no picture")
    (tmp_path / "train/dog/2.png").write_bytes((tmp_path / "train/dog/2.png").read_bytes()[:50])
    found = folder_set(tmp_path, decoder, unreadable=1)

    _, labels = found.train.at(np.array([0, 1]), None)

    assert labels.tolist() == [0, 0]
    assert "cat/1.jpg cannot be read" in capsys.readouterr().err
    with pytest.raises(
        DataError, match=r"dog/2\.png cannot be read .*: 2 unreadable images, data\.unreadable allows 1"
    ):
        found.train.at(np.array([6]), None)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: (f / "val").rename(f / "test"), r"val is missing; data\.path must hold train/CLASS"),
        (lambda f: [p.unlink() for p in f.glob("val/dog/*")], r"val/dog is empty: it has no \.jpeg, \.jpg, \.png file"),
        (lambda f: (f / "val/dog").rename(f / "val/cow"), r"train and val have different class folders \(cow, dog\)"),
    ],
    ids=["missing", "empty", "other classes"],
)
def test_a_wrong_image_folder_is_refused(damage: Callable[[Path], object], told: str, tmp_path: Path):
    damage(image_folder(tmp_path))

    with pytest.raises(DataError, match=told):
        folder_set(tmp_path)


@NO_DALI
@pytest.mark.parametrize("draw", [None, Draw(1, 5)], ids=["held out", "training"])
def test_dali_sees_the_parts_of_the_pictures_that_pillow_sees(draw: Draw | None, tmp_path: Path):
    gradients(tmp_path)
    places = np.array([7, 0, 3])

    mine, theirs = (folder_set(tmp_path, decoder).train.at(places, draw) for decoder in ("pillow", "dali"))

    assert theirs[0].dtype == torch.uint8
    assert torch.equal(mine[1], theirs[1])
    assert (mine[0].int() - theirs[0].int()).abs().max() <= 6  # whole pixels are cut out, and two differ by 4


@NO_DALI
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_dali_decodes_on_the_gpu_that_trains(tmp_path: Path):
    found = folder_set(gradients(tmp_path), "dali")

    images, labels = found.to(torch.device("cuda")).training(Draw(1, 5), np.arange(8))

    assert images.is_cuda
    assert labels.is_cuda
    assert (images.cpu() - found.training(Draw(1, 5), np.arange(8))[0]).abs().max() < 0.2  # of a deviation


@EITHER
def test_a_resumed_run_over_an_image_folder_keeps_its_bits(decoder: str, small: Callable[..., Job], tmp_path: Path):
    table = f"kind='imagefolder', path='{gradients(tmp_path / 'pictures')}', image_size=16, global_batch=4, workers=2"
    data, every = f"data={{{table}, decoder='{decoder}'}}", "checkpoint.every_steps=2"

    whole = train(small(data, "steps=6", out="whole"))
    with pytest.raises(Crash):
        train(small(data, "steps=6", every, out="parts"), report=CrashAt(5, saved=4))
    again = train(small(data, "steps=6", every, out="parts"))

    assert (again.restarts, again.digest) == (1, whole.digest)


def test_without_dali_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("training.data.dali.find_spec", lambda _: None)

    with pytest.raises(DataError, match=r'needs NVIDIA DALI: run `make dali`, or set data\.decoder = "pillow"'):
        folder_set(image_folder(tmp_path), "dali")


CLASSES = "data={kind='synthetic-text', global_batch=8, samples=40, held_out=8, length=16, classes=3}"
CHAIN = "data={kind='synthetic-text', global_batch=8, samples=40, held_out=8, length=16}"


@pytest.mark.parametrize(
    ("source", "model"),
    [("seed=1", "cnn"), (CLASSES, "text-encoder"), (CHAIN, "gpt")],
    ids=["images", "documents", "text"],
)
def test_a_packed_set_is_the_set_it_was_packed_from(source: str, model: str, small: Callable[..., Job], tmp_path: Path):
    job = small(source, f"model={{kind='{model}'}}")
    pack.pack(job, tmp_path / "packed")
    table = f"data={{kind='packed', path='{tmp_path / 'packed'}', global_batch=8, length=16}}"
    found, again = data.load(job), data.load(small(table, f"model={{kind='{model}'}}"))

    for mine, theirs in zip(found.evaluation(np.arange(5)), again.evaluation(np.arange(5)), strict=True):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(
        found.training(Draw(1, 2), np.arange(5)), again.training(Draw(1, 2), np.arange(5)), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_a_packed_image_folder_trains(small: Callable[..., Job], tmp_path: Path):
    image_folder(tmp_path / "pictures")
    job = small(f"data={{kind='imagefolder', path='{tmp_path / 'pictures'}', image_size=16, global_batch=8}}")
    pack.pack(job, tmp_path / "packed")

    result = train(small(f"data={{kind='packed', path='{tmp_path / 'packed'}', global_batch=8}}", "steps=2"))

    assert result.steps == 2


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
    pack.pack(small(), folder)
    damage(folder)

    with pytest.raises(DataError, match=told):
        data.load(small(f"data={{kind='packed', path='{folder}', global_batch=8}}"))


@pytest.mark.parametrize(("source", "model"), [(CLASSES, "text-encoder"), (CHAIN, "gpt")], ids=["documents", "text"])
def test_a_token_beyond_the_vocabulary_is_named_when_its_batch_is_drawn(
    source: str, model: str, small: Callable[..., Job], tmp_path: Path
):
    pack.pack(small(source, f"model={{kind='{model}'}}"), tmp_path / "packed")
    tokens = np.load(tmp_path / "packed/train-0.npy")
    tokens.reshape(-1)[-48:] = 256  # three windows: each is moved at random
    np.save(tmp_path / "packed/train-0.npy", tokens)
    wanted = f"data={{kind='packed', path='{tmp_path / 'packed'}', length=16, global_batch=8}}"
    packed = data.load(small(wanted, f"model={{kind='{model}'}}"))

    packed.training(Draw(0, 0), np.arange(8))
    with pytest.raises(DataError, match="token 256 is beyond the vocabulary of 256: make the data set again"):
        packed.training(Draw(0, 0), np.arange(len(packed.train)))


def test_what_is_there_is_not_packed_over(small: Callable[..., Job], tmp_path: Path):
    with pytest.raises(DataError, match="is there already; name another folder"):
        pack.pack(small(), tmp_path)


def test_a_fold_judges_by_a_fifth_of_the_training_set(small: Callable[..., Job]):
    whole, part = data.load(small()), data.load(small("data.fold=2"))
    text = data.load(small(CLASSES, "model={kind='text-encoder'}", "data.fold=0"))

    assert (len(part.train), len(part.held_out)) == (192, 48)
    assert isinstance(whole, ImageSet)
    both = torch.cat([part.train.at(np.arange(192), None)[0], part.held_out.at(np.arange(48), None)[0]])
    everything = whole.train.at(np.arange(240), None)[0]
    assert sorted(t.numpy().tobytes() for t in both) == sorted(t.numpy().tobytes() for t in everything)
    assert isinstance(text, TextSet)
    assert (len(text.train), len(text.held_out)) == (32, 8)
