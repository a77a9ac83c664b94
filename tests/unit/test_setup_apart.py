"""Environments apart from the project's own, as set-up makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import apart
from tools.phases import CommandError, PhaseError

PYTHON = "infra/policy_pack/.venv/bin/python"


def silent(_: str) -> None:
    pass


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that set-up runs, none of them for real; the environment's folder is made as uv would."""
    calls: list[list[str]] = []

    def command(words: list[str], *_: object, **__: object) -> list[str]:
        calls.append(words)
        (tmp_path / "infra" / "policy_pack" / ".venv").mkdir(parents=True, exist_ok=True)
        return []

    (tmp_path / "infra" / "policy_pack").mkdir(parents=True)
    (tmp_path / "infra" / "policy_pack" / "requirements.txt").write_text("pulumi-policy==1 --hash=sha256:0\n")
    monkeypatch.setattr(apart, "command", command)
    return calls


def test_the_pack_gets_its_own_lock_hash_by_hash_and_a_second_run_does_nothing(
    tmp_path: Path, called: list[list[str]]
) -> None:
    apart.policy_pack_phase(tmp_path, silent)
    install = called[-1]
    assert {"--require-hashes", str(tmp_path / PYTHON)} < set(install)
    assert install[-1] == str(tmp_path / "infra" / "policy_pack" / "requirements.txt")

    called.clear()
    assert apart.policy_pack_phase(tmp_path, silent).endswith("unchanged")
    assert called == []


def test_a_changed_lock_is_installed_anew(tmp_path: Path, called: list[list[str]]) -> None:
    apart.policy_pack_phase(tmp_path, silent)
    called.clear()
    (tmp_path / "infra" / "policy_pack" / "requirements.txt").write_text("pulumi-policy==2 --hash=sha256:1\n")

    apart.policy_pack_phase(tmp_path, silent)

    assert "sync" in called[-1]


def test_an_index_that_is_out_of_reach_is_told_with_what_to_do(
    tmp_path: Path, called: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(words: list[str], *_: object, **__: object) -> list[str]:
        raise CommandError(words, "ended with exit code 1", ("no route to host",))

    monkeypatch.setattr(apart, "command", fails)

    with pytest.raises(PhaseError, match="ended with exit code 1"):
        apart.policy_pack_phase(tmp_path, silent)
