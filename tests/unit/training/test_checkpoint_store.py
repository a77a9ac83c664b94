from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import random
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_checkpoints import ABOUT, tensors

from training.checkpoint.digest import digest, of_folder
from training.checkpoint.direct_io import BLOCK_BYTES
from training.checkpoint.manifest import CorruptCheckpointError, read, read_manifest
from training.checkpoint.safetensors_file import InvalidTensorFileError, Written, decode
from training.checkpoint.store import Store


def newest_step(store: Store) -> int:
    found = store.newest().contents
    assert found is not None
    assert int(found.tensors()["count"]) == found.step
    return found.step


def test_a_checkpoint_comes_back_as_it_was_saved(store: Store):
    found = read(store.root / "step-00000020")

    assert (found.step, found.about) == (20, ABOUT)
    assert all(torch.equal(found.tensors()[name], tensor) for name, tensor in tensors(20).items())


def test_a_checkpoint_of_more_than_one_block_comes_back_too(store: Store):
    saved = {"w": torch.arange(BLOCK_BYTES // 4 + 1, dtype=torch.int32)}

    assert torch.equal(read(store.save(30, saved, {"world_size": 1})).tensors()["w"], saved["w"])


def test_the_manifest_names_every_file_with_its_hash_and_how_it_was_made(store: Store):
    body = json.loads((store.root / "step-00000020" / "manifest.json").read_text())["body"]

    assert (body["step"], body["torch"], body["about"]["world_size"]) == (20, torch.__version__, 1)
    assert [len(file["sha256"]) for file in body["files"].values()] == [64]
    assert body["pieces"]["rank-0.safetensors"]["w"]["shape"] == [500]


@pytest.mark.parametrize("name", ["rank-0.safetensors", "manifest.json"])
def test_any_flipped_bit_is_found_and_the_checkpoint_before_is_used(store: Store, name: str):
    path = store.root / "step-00000020" / name
    good = path.read_bytes()
    dice = random.Random(1)
    for _ in range(100):
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        path.write_bytes(bad)
        found = store.newest()
        # a flip in the manifest's white space changes nothing that it says
        assert newest_step(store) == (20 if is_same_text(name, good, bad) else 10)
        assert [folder.name for folder, _ in found.passed_over] in (["step-00000020"], [])


def is_same_text(name: str, good: bytes, bad: bytearray) -> bool:
    try:
        return name == "manifest.json" and json.loads(good) == json.loads(bad)
    except ValueError:
        return False


@pytest.mark.parametrize("name", ["rank-0.safetensors", "manifest.json"])
def test_a_cut_or_missing_file_is_found(store: Store, name: str):
    path = store.root / "step-00000020" / name
    path.write_bytes(path.read_bytes()[:-7])
    assert newest_step(store) == 10

    path.unlink()
    assert newest_step(store) == 10
    assert store.newest().passed_over[0][1] == f"{name} is missing"


@pytest.mark.parametrize("name", ["rank-0.safetensors", "manifest.json"])
def test_a_disk_that_does_not_answer_says_nothing_about_a_checkpoint(
    store: Store, name: str, monkeypatch: pytest.MonkeyPatch
):
    opened = os.open

    def unwell(path: Any, *args: Any, **options: Any) -> int:
        if path == store.root / "step-00000020" / name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path, *args, **options)

    monkeypatch.setattr(os, "open", unwell)

    told = rf"Input/output error: .*may be good.*: '.*step-00000020/{name}'$"
    with pytest.raises(OSError, match=told) as error:
        store.newest()
    assert error.value.errno == errno.EIO
    with pytest.raises(OSError, match=told):
        store.save(20, tensors(20), {})
    assert len(store.folders()) == 2


def test_a_checkpoint_under_another_steps_name_is_refused(store: Store):
    (store.root / "step-00000020").rename(store.root / "step-00000030")

    assert newest_step(store) == 10


def test_code_in_a_checkpoint_is_never_run(store: Store, tmp_path: Path):
    """A pickle under a manifest that vouches for it, as somebody who can write to the folder could make it."""

    class Attack:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "ran",))

    folder = store.root / "step-00000020"
    torch.save({"w": Attack()}, folder / "rank-0.safetensors")
    with (folder / "rank-0.safetensors").open("ab") as file:
        file.write(bytes(4096))  # as many as the manifest's tensors take
    data = (folder / "rank-0.safetensors").read_bytes()
    written = Written(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    forged = replace(read_manifest(folder), files={"rank-0.safetensors": written})
    (folder / "manifest.json").write_bytes(forged.encoded())

    with pytest.raises(CorruptCheckpointError, match=r"header is longer|something else than tensors"):
        read(folder)

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, -4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
        {"dtype": "object", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]},
        ["F32", [2], [0, 8]],
    ],
)
def test_a_tensor_that_claims_other_bytes_than_its_own_is_refused(entry: object):
    header = json.dumps({"w": entry}).encode()

    with pytest.raises(InvalidTensorFileError):
        decode(bytearray(struct.pack("<Q", len(header)) + header + bytes(8)))


def test_a_file_outside_the_folder_is_not_read(store: Store):
    folder = store.root / "step-00000020"
    sealed = read_manifest(folder)
    forged = replace(sealed, files={"../step-00000010/rank-0.safetensors": sealed.files["rank-0.safetensors"]})
    (folder / "manifest.json").write_bytes(forged.encoded())

    with pytest.raises(CorruptCheckpointError, match="outside"):
        read(folder)


def test_the_newest_two_stay(store: Store):
    store.save(30, tensors(30), {})

    assert [folder.name for folder in store.folders()] == ["step-00000020", "step-00000030"]


def test_what_only_looks_like_a_checkpoint_counts_as_none_and_is_left_alone(store: Store):
    for name in ("step-old", "step-00000020.bak", "step-030", "step-٠٠٠٠٠٠٣٠"):
        (store.root / name).mkdir()
    (store.root / "step-00000040").touch()

    store.save(30, tensors(30), {})

    assert [folder.name for folder in store.folders()] == ["step-00000020", "step-00000030"]
    assert len([*store.root.iterdir()]) == 7


def test_steps_of_nine_digits_are_newer(store: Store):
    for step in (99_999_999, 100_000_000):
        store.save(step, {"count": torch.tensor(step)}, {})

    assert newest_step(store) == 100_000_000


def test_a_valid_checkpoint_of_the_same_step_is_never_replaced(store: Store):
    before = (store.root / "step-00000020" / "manifest.json").read_bytes()

    store.save(20, tensors(20), {"world_size": 9})

    assert (store.root / "step-00000020" / "manifest.json").read_bytes() == before
    assert not list(store.root.glob(".writing-*"))


def test_a_damaged_one_of_the_same_step_makes_room_and_is_kept_for_a_look(store: Store):
    (store.root / "step-00000020" / "rank-0.safetensors").write_bytes(b"")

    store.save(20, tensors(20), {})

    assert newest_step(store) == 20
    assert (store.root / "damaged-step-00000020").is_dir()


def saves_for_ever(root: Path, first: int) -> None:
    store = Store(root)
    for step in range(first, first + 100_000):
        store.save(step, {"w": torch.full((100_000,), float(step)), "count": torch.tensor(step)}, {})


def test_a_kill_during_a_save_leaves_a_valid_checkpoint(tmp_path: Path):
    dice, last, kills, unfinished = random.Random(2), 0, 0, 0
    Store(tmp_path).save(0, tensors(0), {})
    while kills < 12 or not unfinished:  # until one hit a save
        process = multiprocessing.get_context("fork").Process(target=saves_for_ever, args=(tmp_path, last + 1))
        process.start()
        while not any(folder.name > f"step-{last:08d}" for folder in Store(tmp_path).folders()):
            time.sleep(0.01)  # a loaded machine takes its time to start it
        time.sleep(dice.random() * 0.1)
        process.kill()
        process.join()
        kills += 1
        unfinished += any(tmp_path.glob(".writing-*"))
        found = Store(tmp_path).newest()
        assert found.contents is not None
        assert not found.passed_over
        assert bool((found.contents.tensors()["w"] == found.contents.step).all())
        assert found.contents.step >= last
        last = found.contents.step


def test_a_new_start_clears_what_a_killed_save_left(store: Store):
    (store.root / ".writing-step-00000030-1").mkdir()

    store.clear_unfinished()

    assert not list(store.root.glob(".writing-*"))


def test_a_new_start_clears_the_marks_of_killed_ranks_and_none_of_its_own(tmp_path: Path):
    for run in ("before", "now"):
        (tmp_path / f".seen-{run}-00001").touch()

    Store(tmp_path, run="now").clear_unfinished()

    assert [mark.name for mark in tmp_path.glob(".seen-*")] == [".seen-now-00001"]


def test_the_digest_sees_values_names_types_and_shapes_but_no_layout():
    image = torch.arange(48, dtype=torch.float32).view(1, 3, 4, 4)
    same = digest({"a": image.to(memory_format=torch.channels_last), "b": torch.zeros(2)})

    assert digest({"b": torch.zeros(2), "a": image}) == same
    others = [
        {"a": image, "c": torch.zeros(2)},
        {"a": image, "b": torch.zeros(2, 1)},
        {"a": image + 1, "b": torch.zeros(2)},
        {"a": image, "b": torch.zeros(2).int()},
    ]
    assert len({same, *map(digest, others)}) == 5


def test_the_digest_of_a_folder_verifies_it_first(store: Store):
    folder = store.root / "step-00000020"
    assert of_folder(folder) == digest(tensors(20))

    (folder / "rank-0.safetensors").write_bytes((folder / "rank-0.safetensors").read_bytes()[::-1])
    with pytest.raises(CorruptCheckpointError, match=r"rank-0\.safetensors is not what was written"):
        of_folder(folder)
