"""What a run's recipe knows of the tokens that it is trained with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from training import data
from training.build import data_of
from training.config.job import Job, JobError
from training.data import tokens
from training.data.datasets import text_corpora
from training.data.text import TextSet
from training.loop import train

MAIL = "From: a@b.c\nSubject: x\n\n{}"


def test_the_recipe_of_a_run_knows_what_its_tokens_were_made_by(
    carried: Callable, small: Callable[..., Job], tmp_path: Path
):
    def tokenizer(*keys: str) -> str:
        table = ", ".join(("kind='spam', length=8, global_batch=4", *keys))
        job = small(f"data={{{table}}}", "model={kind='text-encoder'}")
        return data.recipe(job.recipe(), data.read(job.data, job.seed))["data.tokenizer"]

    carried("spam", {f"data/spam-1/{n}.txt": MAIL.format(f"offer {n}") for n in range(9)})
    for name, text in {"one": "an offer", "moved": "an offer", "other": "nobody makes"}.items():
        tokens.wordpiece([text] * 9, 60).save(str(tmp_path / name))
    one, moved, other = (tokenizer(f"tokenizer='{tmp_path / name}'") for name in ("one", "moved", "other"))

    assert one == moved
    assert len({one, other, tokenizer(), tokenizer("vocabulary=600")}) == 3  # so few texts have fewer pieces than 512


def test_a_run_under_another_tokenizer_is_refused(carried: Callable, small: Callable[..., Job], tmp_path: Path):
    carried("spam", {f"data/spam-1/{n}.txt": MAIL.format(f"offer {chr(97 + n) * 3}") for n in range(26)})
    path = tmp_path / "tokenizer.json"
    job = small(
        f"data={{kind='spam', length=8, global_batch=4, tokenizer='{path}'}}",
        "model={kind='text-encoder', width=8}",
        "steps=2",
    )
    tokens.wordpiece(["an offer"] * 9, 60).save(str(path))
    train(job)
    tokens.wordpiece(["nobody makes"] * 9, 60).save(str(path))

    with pytest.raises(JobError, match=r"data\.tokenizer: .* was trained with '\w{64}', not '\w{64}'; set another out"):
        train(job)


def test_byte_pairs_are_part_of_a_recipe_too(monkeypatch: pytest.MonkeyPatch, small: Callable[..., Job]):
    monkeypatch.setattr(text_corpora, "novel", lambda: ("the whale " * 99, "the sea " * 99))
    table = "data={{kind='text', source='moby-dick', length=8, global_batch=4, tokens='{}', vocabulary=512}}"
    made = [data_of(small(table.format(kind), "model={kind='gpt'}")) for kind in ("bpe", "bytes")]

    assert isinstance(made[0], TextSet)
    assert isinstance(made[1], TextSet)
    assert (len(made[0].tokenizer or ""), made[1].tokenizer) == (64, None)
