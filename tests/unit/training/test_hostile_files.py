"""Files of a run and of data sets as somebody who means harm would make them: passed over or refused in one line."""

from __future__ import annotations

import copy
import json
import os
import random
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forked import on_ranks
from small_checkpoints import tensors

from training import strict
from training.checkpoint.manifest import Manifest, canonical, seal
from training.checkpoint.resume import shapes_in
from training.checkpoint.store import Store
from training.config.data import Packed
from training.data.datasets.packed import load as load_packed
from training.data.images import DataError
from training.metrics.progress import Progress, records_in
from training.metrics.run_files import rows_until
from training.metrics.watch import view

MOST_KB = 50 * 1024  # of memory that a whole campaign may take
SEED = 34
PATIENCE_SECONDS = 600  # where nothing may be waited for; a slow computer is no wait
BAD: list[Any] = [
    None, True, -1, 1.5, 2**31, 2**63, 2**200, 10**18, "", "..", "../x", "/etc/passwd", "a/b", "x\x1b[2J", "F32 ",
    [], {}, [0], [2**62, 2**62], [-1], [True], ["500"], [[]], [1] * 10_000, {"bytes": 0}, float("nan"), float("inf"),
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a document."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(document: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """A copy of a document with one change: given what holds the value, and its key there."""
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return made


def forgeries(body: dict[str, Any]) -> Iterator[bytes]:
    """Manifests under a seal that is right for them, each with one thing wrong; and texts that are none."""
    for path in places(body):
        for bad in BAD:
            yield sealed(changed(body, path, lambda holder, key, bad=bad: holder.__setitem__(key, bad)))
        yield sealed(changed(body, path, lambda holder, key: holder.__delitem__(key)))
        yield sealed(changed(body, path, renamed))
    good = sealed(body)
    yield from (b"", b"{", b"null", b"[]", b"\xff\xfe", b"{}" * 3, b"[" * 100_000, b'{"body":' * 50_000)
    yield good.replace(b'"step": 20', b'"step": 20, "step": 20')
    yield good.replace(b'"step": 20', b'"step": ' + b"9" * 5000)
    yield good[:-1] + b', "seal": ""}'
    yield from (good[: len(good) * part // 8] for part in range(1, 8))


def renamed(holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder["../" + key] = holder.pop(key)
    else:
        holder.append(holder[key])


def sealed(body: Any) -> bytes:
    text = canonical(body)
    return f'{{"body": {text}, "seal": "{seal(text)}"}}'.encode()


def misfit(manifest: Manifest) -> str | None:
    """As a model of these two tensors would have it."""
    shapes = {name: list(shape) for name, shape in shapes_in(manifest).items()}
    return None if shapes == {"w": [500], "count": []} else "other tensors"


def passes_over_all(root: Path) -> tuple[int, int, int]:
    """How many forgeries there are, how many were passed over, and how many kilobytes the process grew by; fails where
    one does anything else, but for those that change nothing that counts."""
    store = Store(root)
    folder = store.folder(20)
    good = (folder / "manifest.json").read_bytes()
    chosen = [*forgeries(json.loads(good)["body"])]
    random.Random(SEED).shuffle(chosen)
    before, passed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for forged in chosen:
        (folder / "manifest.json").write_bytes(forged)
        found = store.newest(misfit)
        assert found.contents is not None, forged[:2000]
        assert found.contents.tensors().keys() == tensors(0).keys()
        assert all(torch.equal(t, tensors(found.contents.step)[n]) for n, t in found.contents.tensors().items())
        lines = [why for _, why in found.passed_over]
        assert len(lines) == (found.contents.step == 10)
        assert not any("\n" in line or len(line) > 200 or not line.isprintable() for line in lines), lines
        passed += len(lines)
    return len(chosen), passed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def test_forged_manifests_are_passed_over_in_a_line_each(store: Store) -> None:
    tried, passed, grown = on_ranks(1, passes_over_all, store.root)[0]

    print(f"{tried} forged manifests: {passed} passed over, {tried - passed} of no account, {grown / 1024:.1f} MB")
    assert passed >= 200
    assert tried - passed < tried / 4  # what the recipe says, and which torch it was
    assert grown < MOST_KB


def link(path: Path) -> None:
    path.symlink_to(path.parent.with_name("step-00000010") / path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def enormous(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**42)


INSTEAD: dict[str, Callable[[Path], Any]] = {
    "link": link, "link to a device": device, "pipe": os.mkfifo, "folder": Path.mkdir, "huge": enormous,
}  # fmt: skip


@pytest.mark.timeout(PATIENCE_SECONDS)
@pytest.mark.parametrize("name", ["manifest.json", "rank-0.safetensors"])
@pytest.mark.parametrize("what", INSTEAD)
def test_what_is_no_file_of_a_checkpoint_is_passed_over_without_waiting(store: Store, name: str, what: str) -> None:
    path = store.folder(20) / name
    path.unlink()
    INSTEAD[what](path)

    found = store.newest()

    assert found.contents is not None
    assert found.contents.step == 10
    assert len(found.passed_over) == 1


def test_a_link_is_no_checkpoint(store: Store) -> None:
    store.folder(20).rename(store.root / "elsewhere")
    store.folder(20).symlink_to(store.root / "elsewhere")

    found = store.newest()

    assert found.contents is not None
    assert found.contents.step == 10
    assert found.passed_over == [(store.folder(20), "it is a link to another folder")]


def hostile_lines() -> Iterator[bytes]:
    """Lines of a record of steps in which something is wrong."""
    good = {"step": 3, "restarts": 0, "lost_steps": 0, "seconds": 1.0}
    for key in good:
        for bad in BAD:
            yield json.dumps(good | {key: bad}).encode()
    yield from (
        b"",
        b"null",
        b"[]",
        b"7",
        b'"x"',
        b"[" * 10_000,
        b"\xff",
        b'{"step": 1, "step": 9}',
        b'{"__class__": 1}',
    )


def test_hostile_records_of_steps_count_as_none(tmp_path: Path) -> None:
    (tmp_path / "rank-0.json").write_text(json.dumps({"step": 5}))
    os.mkfifo(tmp_path / "rank-99999.json")
    lines = [*hostile_lines()]
    for number, line in enumerate(lines, 1):
        (tmp_path / f"rank-{number}.json").write_bytes(line)

    found = records_in(tmp_path)

    assert Progress(step=5) in found
    for record in found:
        assert strict.whole(record.step)
        assert strict.whole(record.restarts)
        assert strict.number(record.seconds)
    assert len(found) < len(lines) / 3


def test_hostile_lines_of_metrics_are_left_out(tmp_path: Path) -> None:
    row = {"step": 1, "steps": 9, "loss": 1.0, "lr": 0.1, "samples_per_second": 3.0, "seconds": 1.0}
    lines = [*(json.dumps(row | {key: bad}).encode() for key in row for bad in BAD), *hostile_lines(), b"x" * 2**20]
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"\n".join([*lines, json.dumps(row | {"step": 2}).encode(), b""]))

    rows = rows_until(path, done=2)

    assert rows[-1] == row | {"step": 2}
    assert all(strict.whole(each["step"]) for each in rows)
    view(tmp_path)


def packed(folder: Path) -> dict[str, Any]:
    """A packed set of eight images, and its manifest."""
    about: dict[str, Any] = {"format": 1, "kind": "images", "classes": 2, "mean": 1.0, "std": 2.0, "files": {}}
    for part in ("train", "held_out"):
        about[part] = [f"{part}-0.npy", f"{part}-1.npy"]
        np.save(folder / about[part][0], np.zeros((4, 1, 8, 8), np.uint8))
        np.save(folder / about[part][1], np.zeros(4, np.int64))
    about["files"] = {n: (folder / n).stat().st_size for part in ("train", "held_out") for n in about[part]}
    return about


def test_hostile_manifests_of_packed_sets_are_refused_in_a_line(tmp_path: Path) -> None:
    about, refused, tried = packed(tmp_path), 0, 0
    for path in places(about):
        for bad in BAD:
            forged = changed(about, path, lambda holder, key, bad=bad: holder.__setitem__(key, bad))
            (tmp_path / "manifest.json").write_text(json.dumps(forged))
            tried += 1
            try:
                load_packed(Packed(path=tmp_path, global_batch=2), 1)
            except DataError as error:
                refused += "\n" not in str(error)

    print(f"{tried} forged manifests of packed sets: {refused} refused")
    assert refused > 0.9 * tried


@pytest.mark.parametrize("array", [np.array([{}, print], dtype=object), np.zeros((4, 2)), np.zeros(3, np.int64)])
def test_arrays_of_other_kinds_are_refused(tmp_path: Path, array: np.ndarray) -> None:
    about = packed(tmp_path)
    np.save(tmp_path / "train-1.npy", array, allow_pickle=True)
    about["files"]["train-1.npy"] = (tmp_path / "train-1.npy").stat().st_size
    (tmp_path / "manifest.json").write_text(json.dumps(about))

    with pytest.raises(DataError, match=r"holds no numbers|not those of images"):
        load_packed(Packed(path=tmp_path, global_batch=2), 1)
