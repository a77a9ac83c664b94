"""The lock of a deployment that died: taken away, with what it started ended, and nothing else."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from ops.engine import leftover_processes
from ops.engine.pulumi import Engine
from ops.project import Project


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sessions that were ended; the engine knows its stack and says yes to everything."""
    sessions: list[int] = []
    answer = subprocess.CompletedProcess[str]([], 0, '[{"name": "x"}]', "")
    monkeypatch.setattr(leftover_processes, "end_session", sessions.append)
    monkeypatch.setattr(Engine, "_call", lambda *_, **__: answer)
    return sessions


def locked(root: Path, text: str) -> Engine:
    lock = root / ".gpufleet" / "pulumi" / ".pulumi" / "locks" / "organization" / "gpufleet" / "x" / "1.json"
    lock.parent.mkdir(parents=True)
    lock.write_text(text)
    return Engine(Project(root), "x")


def test_what_a_dead_engine_started_is_ended(tmp_path: Path, ended: list[int]) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    locked(tmp_path, json.dumps({"pid": gone.pid, "hostname": socket.gethostname()})).prepare()

    assert ended == [gone.pid]


def test_a_lock_that_names_nobody_ends_nobody(tmp_path: Path, ended: list[int]) -> None:
    locked(tmp_path, "").prepare()

    assert ended == []
