"""`.venv` from the lock: made once, mended when it was left half-made, changed when the lock changes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tools import environment
from tools.environment import environment_phase, locked, package_index, python_phase
from tools.phases import CommandError, PhaseError

LOCK = """\
# made by: make lock
typer==0.25.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via gpufleet (pyproject.toml)
uv==0.13.9 \\
    --hash=sha256:cc \\
    --hash=sha256:dd
    # via gpufleet (pyproject.toml)
uvloop==1.0 \\
    --hash=sha256:ee
    # via nothing
"""


def silent(_: str) -> None:
    pass


class Installer:
    """Stands in for the commands of set-up: keeps what was asked, and makes the files that an environment shows."""

    def __init__(self, root: Path) -> None:
        self.venv = root / ".venv"
        self.asked: list[str] = []
        self.fails: type[BaseException] | None = None

    def __call__(
        self, argv: Sequence[str], told: object, env: Mapping[str, str] | None = None, **_: object
    ) -> list[str]:
        words = [word for word in argv[1:] if not word.startswith("-")]
        name = next(word for word in words if word in {"venv", "install", "config", "sync", "compileall"})
        self.asked.append("project" if "-e" in argv else name)
        if name == "venv":
            (self.venv / "bin").mkdir(parents=True)
            (self.venv / "bin" / "python").touch()
            (self.venv / "pyvenv.cfg").write_text("version = 3.11.7\n")
        if name == "sync":
            if self.fails is CommandError:
                raise CommandError(argv, "ended with exit code 1", ["no route to host"])
            if self.fails:
                raise self.fails
            (self.venv / "lib" / "python3.11" / "site-packages" / "typer-0.25.0.dist-info").mkdir(
                parents=True, exist_ok=True
            )
        return []


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    (tmp_path / "requirements.txt").write_text(LOCK)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    stand_in = Installer(tmp_path)
    monkeypatch.setattr(environment, "command", stand_in)
    return stand_in


def test_only_the_entry_of_uv_is_taken_from_the_lock() -> None:
    assert locked(LOCK, "uv") == "uv==0.13.9 \\\n    --hash=sha256:cc \\\n    --hash=sha256:dd\n"


def test_the_projects_own_lock_pins_uv_by_hash() -> None:
    lock = (Path(__file__).resolve().parents[2] / "requirements.txt").read_text()
    assert re.fullmatch(r"uv==[\d.]+ \\\n(    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", locked(lock, "uv"))


def test_a_lock_without_uv_is_refused_with_a_remedy() -> None:
    with pytest.raises(PhaseError, match="no entry `uv==") as refused:
        locked("typer==0.25.0 \\\n    --hash=sha256:aa\n", "uv")
    assert "make lock" in refused.value.remedy


def test_the_first_run_makes_the_environment_from_the_lock(tmp_path: Path, installer: Installer) -> None:
    assert environment_phase(tmp_path, silent) == "1 packages from the lock"
    assert installer.asked == ["venv", "install", "config", "sync", "project", "compileall"]


def test_a_second_run_does_nothing(tmp_path: Path, installer: Installer) -> None:
    environment_phase(tmp_path, silent)
    installer.asked.clear()
    assert environment_phase(tmp_path, silent) == "1 packages, unchanged"
    assert installer.asked == []


@pytest.mark.parametrize("changed", ["requirements.txt", "pyproject.toml"])
def test_a_changed_lock_is_installed_into_the_environment_there_is(
    tmp_path: Path, installer: Installer, changed: str
) -> None:
    environment_phase(tmp_path, silent)
    installer.asked.clear()
    with (tmp_path / changed).open("a") as file:
        file.write("# changed\n")
    environment_phase(tmp_path, silent)
    assert installer.asked == ["install", "config", "sync", "project", "compileall"]


@pytest.mark.parametrize("end", [KeyboardInterrupt, CommandError])
def test_a_half_made_environment_is_made_anew(tmp_path: Path, installer: Installer, end: type[BaseException]) -> None:
    installer.fails = end
    with pytest.raises((KeyboardInterrupt, PhaseError)):
        environment_phase(tmp_path, silent)
    (tmp_path / ".venv" / "half-installed").touch()
    installer.fails = None
    installer.asked.clear()
    environment_phase(tmp_path, silent)
    assert installer.asked[0] == "venv"
    assert not (tmp_path / ".venv" / "half-installed").exists()


def test_an_interrupted_change_is_not_trusted_either(tmp_path: Path, installer: Installer) -> None:
    environment_phase(tmp_path, silent)
    before = (tmp_path / "requirements.txt").read_text()
    (tmp_path / "requirements.txt").write_text(before + "# changed\n")
    installer.fails = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        environment_phase(tmp_path, silent)
    (tmp_path / "requirements.txt").write_text(before)
    installer.fails = None
    installer.asked.clear()
    environment_phase(tmp_path, silent)
    assert installer.asked[0] == "venv"


def test_an_environment_whose_python_is_gone_is_made_anew(tmp_path: Path, installer: Installer) -> None:
    environment_phase(tmp_path, silent)
    python = tmp_path / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    installer.asked.clear()
    environment_phase(tmp_path, silent)
    assert installer.asked[0] == "venv"


def test_a_failed_install_names_the_command_its_output_and_what_to_do(tmp_path: Path, installer: Installer) -> None:
    installer.fails = CommandError
    with pytest.raises(PhaseError, match=r"`uv pip sync .*` ended with exit code 1") as failed:
        environment_phase(tmp_path, silent)
    assert failed.value.tail == ("no route to host",)
    assert "package index" in failed.value.remedy


def test_uv_asks_the_package_index_that_pip_is_set_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.delenv("UV_INDEX_URL", raising=False)
    configured = ["global.cert='/x'", "global.index-url='https://mirror.invalid/simple'", "global.timeout='9'"]
    assert package_index(configured) == {"UV_DEFAULT_INDEX": "https://mirror.invalid/simple"}
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.invalid/simple")
    assert package_index(configured) == {}


@pytest.mark.parametrize("version", [(3, 10, 12), (3, 14, 0)])
def test_a_python_the_lock_was_not_made_for_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(PhaseError, match=rf"this is Python 3.{version[1]}; the lock is made for 3.11 to 3.13"):
        python_phase()
