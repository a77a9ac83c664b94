"""Image folders, decoded by Pillow and by DALI; and what is said when something is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image
from trained import CrashAt, CrashError, pack_job

from training.build import data_of
from training.config.data import ImageFolder
from training.config.job import Job
from training.data.datasets import imagefolder
from training.data.decoders import dali, pillow
from training.data.images import DataError, ImageSet
from training.data.transforms.draw import Draw
from training.loop import train

NO_DALI = pytest.mark.skipif(not dali.installed(), reason="NVIDIA DALI is an option: `make dali`")
EITHER = pytest.mark.parametrize("decoder", ["pillow", pytest.param("dali", marks=NO_DALI)])


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


def folder_set(path: Path, decoder: Literal["pillow", "dali"] = "pillow", unreadable: int = 0) -> ImageSet:
    wanted = ImageFolder(path=path, global_batch=2, image_size=16, unreadable=unreadable, decoder=decoder)
    return imagefolder.load(wanted, 1)


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
    with pytest.raises(CrashError):
        train(small(data, "steps=6", every, out="parts"), report=CrashAt(5, saved=4))
    again = train(small(data, "steps=6", every, out="parts"))

    assert (again.restarts, again.digest) == (1, whole.digest)


def test_without_dali_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("training.data.decoders.dali.find_spec", lambda _: None)

    with pytest.raises(DataError, match=r'needs NVIDIA DALI: run `make dali`, or set data\.decoder = "pillow"'):
        folder_set(image_folder(tmp_path), "dali")


def test_a_packed_image_folder_trains(small: Callable[..., Job], tmp_path: Path):
    image_folder(tmp_path / "pictures")
    job = small(f"data={{kind='imagefolder', path='{tmp_path / 'pictures'}', image_size=16, global_batch=8}}")
    pack_job(job, tmp_path / "packed")

    result = train(small(f"data={{kind='packed', path='{tmp_path / 'packed'}', global_batch=8}}", "steps=2"))

    assert result.steps == 2


def test_a_fold_judges_by_a_fifth_of_the_pictures(small: Callable[..., Job], tmp_path: Path):
    image_folder(tmp_path / "pictures")
    wanted = f"data={{kind='imagefolder', path='{tmp_path / 'pictures'}', image_size=16, global_batch=2, fold=1}}"

    part = data_of(small(wanted))

    assert isinstance(part, ImageSet)
    assert isinstance(part.train, pillow.Files)
    assert isinstance(part.held_out, pillow.Files)
    assert (len(part.train), len(part.held_out)) == (6, 2)
    assert not {*part.train.paths} & {*part.held_out.paths}
    for files in (part.train, part.held_out):
        assert [path.parent.name == "dog" for path in files.paths] == files.labels.astype(bool).tolist()
