"""Batched changes of images: what each does, and that it depends on (seed, step, index) alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from training.config.data import Augment
from training.data.images import Images
from training.data.transforms.augment import augmented, flipped
from training.data.transforms.colour import coloured, mean_grey
from training.data.transforms.draw import Draw
from training.data.transforms.mixing import beta
from training.data.transforms.randaugment import OPERATIONS, operated

SAMPLES, CLASSES = 64, 4
DRAW = Draw(3, 7)


@pytest.fixture
def images() -> Images:
    pixels = torch.randint(0, 256, (SAMPLES, 3, 12, 12), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    return Images(images=pixels, labels=torch.arange(SAMPLES) % CLASSES)


def batch(images: Images, wanted: Augment, indices: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    return augmented(lambda which: images.at(which, DRAW), wanted, DRAW, indices, SAMPLES, CLASSES)


EVERYTHING = {
    "flip": Augment(flip=True),
    "shift": Augment(shift=2),
    "colour": Augment(brightness=0.4, contrast=0.4, saturation=0.4),
    "randaugment": Augment(randaugment=2, magnitude=0.5),
    "as many operations as may be": Augment(randaugment=8, magnitude=0.2),
    "mixup": Augment(mixup=0.2),
    "cutmix": Augment(cutmix=1.0),
    "all": Augment(shift=1, flip=True, warp=0.1, randaugment=1, brightness=0.2, mixup=0.2, cutmix=1.0),
}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_moves_and_mirrors_as_the_cpu_does(images: Images):
    wanted, indices, gpu = Augment(shift=2, flip=True), np.arange(SAMPLES), images.to(torch.device("cuda"))

    assert torch.equal(batch(gpu, wanted, indices)[0].cpu(), batch(images, wanted, indices)[0])


@pytest.mark.parametrize("name", EVERYTHING)
def test_an_image_does_not_depend_on_its_batch(name: str, images: Images):
    indices = np.arange(10, 40)

    together, targets = batch(images, EVERYTHING[name], indices)
    alone, alone_targets = batch(images, EVERYTHING[name], indices[17:18])

    assert torch.allclose(together[17:18].float(), alone.float(), atol=1e-3)
    assert torch.allclose(targets[17:18].float(), alone_targets.float(), atol=1e-6)
    assert not torch.equal(together.float(), images.images[10:40].float())


def test_one_large_image_has_the_same_bits_however_many_threads_compute():
    pixels = torch.rand(20, 3, 256, 256, generator=torch.Generator().manual_seed(1)) * 255
    threads = torch.get_num_threads()

    def means(of: int) -> list[float]:
        torch.set_num_threads(of)
        return [mean_grey(image[None]).item() for image in pixels]

    try:
        assert means(1) == means(2)
    finally:
        torch.set_num_threads(threads)


def test_half_of_the_images_are_mirrored(images: Images):
    mirrored = flipped(images.images, DRAW, np.arange(SAMPLES))

    kept = [torch.equal(one, other) for one, other in zip(mirrored, images.images, strict=True)]
    turned = [torch.equal(one.flip(2), other) for one, other in zip(mirrored, images.images, strict=True)]

    assert all(a != b for a, b in zip(kept, turned, strict=True))
    assert 16 < sum(turned) < 48


def test_colour_leaves_grey_images_grey():
    grey = torch.full((4, 3, 8, 8), 100, dtype=torch.uint8)

    changed = coloured(grey, DRAW, np.arange(4), Augment(saturation=0.9, contrast=0.9))

    assert torch.allclose(changed, grey.float(), atol=1e-3)


def test_mixed_shares_are_those_of_the_pixels():
    images = Images(images=torch.zeros(2, 1, 16, 16, dtype=torch.uint8), labels=torch.tensor([0, 1]))
    images.images[1] = 200
    wanted = Augment(cutmix=1.0)

    mixed, shares = augmented(lambda which: images.at(which, None), wanted, DRAW, np.zeros(50, dtype=np.int64), 2, 2)

    assert torch.allclose(mixed.mean(dim=(1, 2, 3)) / 200, shares[:, 1], atol=1e-5)
    assert torch.allclose(shares.sum(1), torch.ones(50))


def test_shares_have_the_beta_distributions_spread():
    uniform = np.random.default_rng(1).random(20_000, dtype=np.float32)

    assert beta(uniform, 1.0) == pytest.approx(uniform, abs=1e-3)
    assert beta(uniform, 0.2).mean() == pytest.approx(0.5, abs=0.01)
    assert beta(uniform, 0.2).var() == pytest.approx(0.25 / 1.4, abs=0.01)  # 1 / (4 (2 α + 1))


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_an_operation_of_no_strength_changes_nothing(number: int, images: Images):
    pixels = images.images.float()
    pixels[:, :, 0, :2] = torch.tensor([0.0, 255.0])  # autocontrast has no strength, and nothing to do here

    changed = OPERATIONS[number](pixels, torch.zeros(SAMPLES))

    assert torch.allclose(changed, pixels, atol=1e-3)


def test_randaugment_draws_every_operation(images: Images):
    same = images.images[:1].expand(SAMPLES, -1, -1, -1)

    changed = operated(same, DRAW, np.arange(SAMPLES), 1, 0.7)

    assert len({image.numpy().tobytes() for image in changed}) >= len(OPERATIONS)
