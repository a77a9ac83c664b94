"""Checkpoints under fire: bits flipped, files cut, saves killed, pickles put in their place. None may load wrong."""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import pickle
import random
import struct
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from training.checkpoint.manifest import MANIFEST, CorruptCheckpointError, read, read_manifest
from training.checkpoint.safetensors_file import Written
from training.checkpoint.store import Store

pytestmark = pytest.mark.drill

FLIPS, CUTS, KILLS, PICKLES = 1000, 500, 200, 25
FILE = "rank-0.safetensors"


def tensors(step: int) -> dict[str, torch.Tensor]:
    return {"w": torch.full((2000,), float(step)), "b": torch.full((7,), step, dtype=torch.bfloat16)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "checkpoints")
    for step in (10, 20):
        store.save(step, tensors(step), {"world_size": 1})
    return store


def loaded(store: Store) -> int:
    """The step of the newest valid checkpoint; fails where its tensors are not exactly those that were saved."""
    found = store.newest().contents
    assert found is not None
    assert all(torch.equal(found.tensors()[name], tensor) for name, tensor in tensors(found.step).items())
    return found.step


def says_the_same(good: bytes, bad: bytes) -> bool:
    try:
        return json.loads(good) == json.loads(bad)
    except ValueError:
        return False


def damaged(store: Store, count: int, damage: Callable[[random.Random, bytes], bytes]) -> int:
    """Damages the newest checkpoint so many times; returns how often it was passed over."""
    dice, fallen_back = random.Random(7), 0
    for _ in range(count):
        path = store.root / "step-00000020" / dice.choice([FILE, FILE, FILE, MANIFEST])
        good = path.read_bytes()
        bad = damage(dice, good)
        path.write_bytes(bad)
        step = loaded(store)
        harmless = bad == good or (path.name == MANIFEST and says_the_same(good, bad))  # white space only
        assert step == (20 if harmless else 10)
        fallen_back += step == 10
        path.write_bytes(good)
    return fallen_back


def test_a_thousand_flipped_bits_load_nothing_wrong(store: Store) -> None:
    def flip(dice: random.Random, good: bytes) -> bytes:
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        return bytes(bad)

    assert damaged(store, FLIPS, flip) > 0.9 * FLIPS


def test_five_hundred_cut_files_load_nothing_wrong(store: Store) -> None:
    assert damaged(store, CUTS, lambda dice, good: good[: dice.randrange(len(good))]) > 0.99 * CUTS


def saves_for_ever(root: Path, first: int) -> None:
    store = Store(root)
    store.clear_unfinished()
    for step in range(first, first + 1_000_000):
        store.save(step, {**tensors(step), "large": torch.full((200_000,), float(step))}, {})


def test_two_hundred_kills_leave_a_valid_checkpoint_at_every_instant(tmp_path: Path) -> None:
    dice, last, unfinished = random.Random(2), 0, 0
    Store(tmp_path).save(0, tensors(0), {})
    for _ in range(KILLS):
        process = multiprocessing.get_context("fork").Process(target=saves_for_ever, args=(tmp_path, last + 1))
        process.start()
        time.sleep(dice.uniform(0.02, 0.15))
        assert loaded(Store(tmp_path)) >= last  # while the other one saves and removes
        process.kill()
        process.join()
        unfinished += any(tmp_path.glob(".writing-*"))
        last = loaded(Store(tmp_path))

    assert unfinished > KILLS / 10, "hardly a kill hit a save: the test proved little"


class Attack:
    """Touches a file when it is unpickled."""

    def __init__(self, mark: Path, protocol_extra: int) -> None:
        self.mark, self.extra = mark, protocol_extra

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.mark,))


def attacks(mark: Path) -> list[bytes]:
    """Pickles bare, in torch's zip and legacy formats, nested, beside tensors, and dressed as our own files."""
    attack = Attack(mark, 0)
    found = [pickle.dumps(attack, protocol) for protocol in range(6)]
    for value in (attack, [attack], {"w": attack}, {"w": torch.zeros(3), "x": attack}, {"a": {"b": [{"c": attack}]}}):
        for legacy in (False, True):
            saved = io.BytesIO()
            torch.save(value, saved, _use_new_zipfile_serialization=not legacy)
            found.append(saved.getvalue())
    code = pickle.dumps(attack)
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(code)], "data_offsets": [0, len(code)]}}).encode()
    found.append(struct.pack("<Q", len(header)) + header + code)  # a good tensor file whose bytes are a pickle
    for entry in (
        {"dtype": "object", "shape": [1], "data_offsets": [0, len(code)]},
        {"dtype": "F32", "shape": [2**60], "data_offsets": [0, 2**62]},
        {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]},
        {"__reduce__": "os.system", "dtype": "F32"},
    ):
        header = json.dumps({"w": entry}).encode()
        found.append(struct.pack("<Q", len(header)) + header + code)
    slipped = io.BytesIO()
    with zipfile.ZipFile(slipped, "w") as archive:
        archive.writestr("../../archive/data.pkl", code)
    found += [slipped.getvalue(), code + slipped.getvalue(), struct.pack("<Q", 2**63) + code]
    found.append(struct.pack("<Q", 20_000) + b"[" * 20_000)  # a header that nests as deep as it is long
    return found


def test_twenty_five_malicious_pickles_run_no_code(store: Store, tmp_path: Path) -> None:
    """Each under a manifest that vouches for it, as somebody who can write to the folder could make it."""
    mark, folder = tmp_path / "ran", store.root / "step-00000020"
    made = attacks(mark)
    for data in made:
        (folder / FILE).write_bytes(data)
        written = Written(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        (folder / MANIFEST).write_bytes(replace(read_manifest(folder), files={FILE: written}).encoded())
        with pytest.raises(CorruptCheckpointError):
            read(folder).tensors()
        assert not mark.exists()

    assert len(made) >= PICKLES
    pickle.loads(made[0])  # the attack itself works
    assert mark.exists()
