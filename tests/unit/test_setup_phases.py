"""Phases of set-up: what a person is told, and that nothing outlives them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import setup
from tools.phases import CommandError, PhaseError, SkippedError, Table, command

ROOT = Path(__file__).resolve().parents[2]


def silent(_: str) -> None:
    pass


def test_a_phase_prints_its_note_and_its_time() -> None:
    ticks = iter([0.0, 0.0, 1.0, 94.1])
    out = io.StringIO()
    Table(out, clock=lambda: next(ticks)).run("environment", lambda: "128 packages from the lock")
    assert out.getvalue().split() == ["environment", "128", "packages", "from", "the", "lock", "93.1", "s"]


def test_a_failed_phase_tells_what_the_last_output_and_a_remedy() -> None:
    def phase() -> str:
        raise PhaseError("no route to the index", "connect, then run again", ["line 1", "line 2"])

    out = io.StringIO()
    with pytest.raises(PhaseError):
        Table(out).run("environment", phase)
    first, *rest = out.getvalue().splitlines()
    assert "failed: no route to the index" in first
    assert rest == ["      line 1", "      line 2", "  to do: connect, then run again"]


def test_a_folder_that_cannot_be_written_is_a_failed_phase_not_a_traceback(tmp_path: Path) -> None:
    out = io.StringIO()
    with pytest.raises(PhaseError):
        Table(out).run("engine", lambda: str((tmp_path / "missing" / "file").write_text("x")))
    assert f"No such file or directory: '{tmp_path}/missing/file'" in out.getvalue()


def test_phases_after_a_failed_one_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise PhaseError("no network", "connect")

    monkeypatch.setattr(setup, "environment_phase", broken)
    monkeypatch.setattr(setup, "engine_phase", lambda *_: pytest.fail("the engine was looked for"))
    table = Table(io.StringIO())
    assert setup.phases(tmp_path, table, tests=True, policy_pack=False) == 1
    assert [(row.phase, row.state) for row in table.rows] == [("python", "ok"), ("environment", "failed")]


def test_tools_of_tests_that_cannot_be_had_do_not_fail_the_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_root(*_: object) -> str:
        raise SkippedError("no mmdebstrap: tests of machine isolation will be skipped")

    for name in ("environment_phase", "engine_phase", "ssh_phase", "control_plane_phase"):
        monkeypatch.setattr(setup, name, lambda *_: "here")
    monkeypatch.setattr(setup, "machines_phase", no_root)
    table = Table(io.StringIO())
    assert setup.phases(tmp_path, table, tests=True, policy_pack=False) == 0
    row = next(row for row in table.rows if row.phase == "machines")
    assert (row.state, row.note) == (
        "skipped",
        "no mmdebstrap: tests of machine isolation will be skipped",
    )


def test_the_phases_are_kept_for_the_demo_to_read(tmp_path: Path) -> None:
    table = Table(io.StringIO())
    table.run("python", lambda: "3.11.7")
    table.save(tmp_path / ".gpufleet" / "setup.json")
    [row] = json.loads((tmp_path / ".gpufleet" / "setup.json").read_text())
    assert (row["phase"], row["note"], row["state"]) == ("python", "3.11.7", "ok")
    assert row["seconds"] >= 0


def test_something_slow_gives_a_sign_of_life_where_lines_cannot_be_rewritten() -> None:
    now, out = [0.0], io.StringIO()
    table = Table(out, clock=lambda: now[0])

    def phase() -> str:
        for second in range(40):
            now[0] = float(second)
            table.working("building")
        return "built"

    table.run("engine", phase)
    assert [line.split(",")[-1].strip() for line in out.getvalue().splitlines()[:-1]] == ["15 s", "30 s"]


def test_a_command_that_fails_gives_its_last_lines() -> None:
    with pytest.raises(CommandError, match=r"`sh -c .*` ended with exit code 3") as failed:
        command(["sh", "-c", "seq 1 20; echo oops >&2; exit 3"], silent)
    assert failed.value.tail[-2:] == ("20", "oops")
    assert len(failed.value.tail) == 12


def test_a_command_that_is_not_there_is_a_command_that_fails() -> None:
    with pytest.raises(CommandError, match="did not start: No such file or directory"):
        command(["/nowhere/go", "build"], silent)


def test_a_command_that_hangs_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(CommandError, match="took more than 1 s"):
        command(["sleep", "60"], silent, limit_seconds=1)
    assert time.monotonic() - began < 10


def test_an_interrupted_command_leaves_no_process_of_its_group() -> None:
    groups: list[int] = []

    def interrupt(line: str) -> None:
        groups.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command(["sh", "-c", "sleep 60 & sleep 60 & echo $$; wait"], interrupt)
    time.sleep(0.2)  # the orphans' new parent collects them
    living = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout.split("\n")
    assert not [line for line in living if line.split()[:1] == [str(groups[0])] and "Z" not in line]


INTERRUPTED_SETUP = """
import sys
from pathlib import Path
from tools import setup
from tools.phases import command

def slow(root, working):
    command(["sh", "-c", "echo here; sleep 60"], lambda line: print(line, flush=True))

setup.repository = lambda: Path(sys.argv[1])
setup.environment_phase = slow
sys.exit(setup.main([]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_set_up_says_one_line_and_exits_130(tmp_path: Path, number: signal.Signals) -> None:
    command_line = [sys.executable, "-c", INTERRUPTED_SETUP, str(tmp_path)]
    run = subprocess.Popen(command_line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    while run.stdout.readline() != "here\n":
        assert run.poll() is None
    os.kill(run.pid, number)
    _, said = run.communicate()
    assert (run.returncode, said) == (130, "set-up interrupted: run it again to go on\n")
