"""The flag that the loop polls: who raises it, and what it never does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.elastic import notices
from training.elastic.notices import Signals
from training.elastic.stop import Stop


@pytest.fixture(autouse=True)
def handlers_given_back() -> Iterator[None]:
    yield
    Signals.of_process().release()


def test_nobody_asked() -> None:
    assert not Stop().requested()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_raises_the_flag_and_nothing_else(number: signal.Signals) -> None:
    stop = Stop()

    os.kill(os.getpid(), number)

    assert stop.requested()
    assert stop.reason() == number.name


def test_a_signal_before_the_loop_made_its_flag_is_not_lost() -> None:
    Signals.of_process()
    os.kill(os.getpid(), signal.SIGTERM)

    assert Stop().requested()


def test_the_second_sigint_ends_the_process_at_once() -> None:
    program = (
        "import os, signal; from training.elastic.stop import Stop; stop = Stop()\n"
        "os.kill(os.getpid(), signal.SIGINT); print(stop.requested(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGINT); print('still here')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ended.returncode == -signal.SIGINT
    assert ended.stdout == "True\n"


def test_the_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    Stop()
    Signals.of_process().release()

    assert signal.getsignal(signal.SIGTERM) is before
    assert not Stop().requested()


def test_a_file_is_a_persons_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "FILE_POLL_SECONDS", 0.0)
    stop = Stop(out=tmp_path)
    assert not stop.requested()

    (tmp_path / "STOP").touch()
    assert stop.reason() == f"the file {tmp_path / 'STOP'}"

    (tmp_path / "STOP").unlink()
    assert not stop.requested()


def test_the_file_is_not_looked_up_at_every_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "FILE_POLL_SECONDS", 3600.0)
    stop = Stop(out=tmp_path)
    assert not stop.requested()
    (tmp_path / "STOP").touch()

    assert not stop.requested()


def test_any_source_can_raise_it() -> None:
    class Notice:
        def requested(self) -> str | None:
            return "the cloud's notice"

    assert Stop(Notice()).reason() == "the cloud's notice"


def test_the_flag_needs_no_torch() -> None:
    program = "import sys; import training.elastic.stop; print('torch' in sys.modules)"

    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout == "False\n"
    )
