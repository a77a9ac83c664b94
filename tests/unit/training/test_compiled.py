"""torch.compile as an option: it learns the same, and is refused in words where it cannot be."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from trained import After, losses

from training.config.job import Job, JobError
from training.loop import train


def test_without_a_compiler_it_is_refused(small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)

    with pytest.raises(JobError, match=r"model\.compile: needs a C\+\+ compiler on a CPU: install g\+\+"):
        train(small("model.compile=true"))


@pytest.mark.drill
def test_a_compiled_model_learns_the_same_and_resumes_to_the_same_bits(small: Callable[..., Job]):
    plain, straight, job = small(out="plain"), small("model.compile=true", out="straight"), small("model.compile=true")

    train(plain)
    digest = train(straight).digest
    train(job, stop=After(5))

    assert losses(straight) == pytest.approx(losses(plain), abs=1e-4)
    assert train(job).digest == digest
