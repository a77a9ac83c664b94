"""What the launcher promises, shown on real processes whose ranks are stand-ins (no training, no process group)."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launched import Launchers, alive, launchers

WAITS = """
class SlowEnd:  # torch takes its time to go, too: rank 1 is still there when rank 0 has ended
    def __del__(self, sleep=time.sleep):
        sleep(1)

slow = SlowEnd() if rank == 1 else None

def main(argv):
    from training.elastic.stop import Stop
    stop, number = Stop(out=out), 0
    while not stop.requested():
        number += 1
        step(number)
        time.sleep(0.05)
    (out / "checkpoints" / f"step-{number:08d}").mkdir(parents=True, exist_ok=True)
    return 75
"""
DEAF = WAITS.replace("not stop.requested()", "not (stop.requested() and (out / 'asked').touch())")  # hears and goes on
LINGERS = WAITS.replace("    return 75", "    time.sleep(600)")  # until it is killed
TELLS = """
def main(argv):
    out.mkdir(exist_ok=True)
    (out / "seconds").write_text(os.environ["TRAINING_SHUTDOWN_SECONDS"])
    return 0
"""
WORLDS = WAITS.replace("    while", "    (out / f'world-{os.environ[\"WORLD_SIZE\"]}').touch()\n    while")
RAISES = """
def main(argv):
    if rank == 0:
        signal.pause()
    raise ValueError("no such layer")
"""


HANGS_ONCE = """
def main(argv):
    if (out / "hung").exists():
        return 0
    out.mkdir(exist_ok=True)
    (out / "hung").touch()
    from training.elastic.heartbeat import Heartbeat
    Heartbeat().beat()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    time.sleep(600)
"""


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launchers]:
    with launchers(tmp_path) as starting:
        yield starting


def test_a_wrong_job_ends_with_2_before_any_rank_starts(launch: Launchers) -> None:
    code, said = launch("--set", "optimizer.lr=-1", program=WAITS).end()

    assert code == 2
    assert "optimizer.lr" in said
    assert "Traceback" not in said
    assert not (launch.folder / "out").exists()


@pytest.mark.parametrize("wrong", [["--nnodes", "2:1"], ["--nproc", "0"], ["--store", "nowhere"], ["--nnodes", "2"]])
def test_a_wrong_argument_ends_with_2_and_one_line(launch: Launchers, wrong: list[str]) -> None:
    code, said = launch(*wrong, program=WAITS).end()

    assert code == 2
    assert wrong[0] in said
    assert "Traceback" not in said


def test_it_refuses_the_setting_that_makes_restarts_hang(launch: Launchers) -> None:
    code, said = launch(program=WAITS, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="0").end()

    assert code == 2
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0" in said


def test_a_broken_connection_stops_an_attached_job_with_a_checkpoint(launch: Launchers) -> None:
    chatty = WAITS.replace("step(number)", "step(number); print(number, flush=True)")
    job = launch("--attached", "--nproc", "2", program=chatty)
    job.until(lambda: len(job.steps()) > 2)

    job.hang_up()
    code, said = job.end()

    assert code == 75
    assert f"stopped by the end of standard input; the next launch resumes at step {job.checkpoints()[-1]}" in said


def test_a_person_stops_a_job_with_a_file(launch: Launchers) -> None:
    job = launch(program=WAITS)
    job.until(job.steps)

    (job.out / "STOP").touch()
    first = job.end()
    again = launch(program=WAITS).end()

    assert first[0] == again[0] == 75
    assert str(job.out / "STOP") in first[1]
    assert "remove it to go on" in again[1]


@pytest.mark.parametrize(
    ("program", "seconds", "ends_with", "told"),
    [
        (DEAF, 1, 1, "no checkpoint within 1 s of SIGTERM"),
        (LINGERS, 5, 75, "the ranks did not end within 5 s of SIGTERM and were killed"),
    ],
    ids=["without a checkpoint", "with one"],
)
def test_ranks_that_do_not_leave_in_time_are_killed_and_their_checkpoint_counts(
    launch: Launchers, program: str, seconds: int, ends_with: int, told: str
) -> None:
    job = launch("--shutdown-timeout", str(seconds), program=program)
    job.until(job.steps)
    ranks = job.ranks()

    job.ask(signal.SIGTERM)
    code, said = job.end()

    assert (code, told in said) == (ends_with, True)
    assert not any(map(alive, ranks))


def test_ranks_know_how_long_they_have_to_leave(launch: Launchers) -> None:
    job = launch("--shutdown-timeout", "30", program=TELLS)

    assert job.end()[0] == 0
    assert (job.out / "seconds").read_text() == "30"


@pytest.mark.parametrize("taken", ["out", "out/logs"])
def test_a_folder_that_cannot_be_made_is_one_line(launch: Launchers, taken: str) -> None:
    (launch.folder / taken).parent.mkdir(exist_ok=True)
    (launch.folder / taken).symlink_to("/nowhere/at/all")

    code, said = launch(program=WAITS).end()

    assert code == 1
    assert taken in said
    assert "Traceback" not in said


def test_a_second_ctrl_c_ends_it_at_once(launch: Launchers) -> None:
    job = launch(program=DEAF)
    job.until(job.steps)
    ranks = job.ranks()

    job.ask(signal.SIGINT)
    job.until((job.out / "asked").exists)
    job.ask(signal.SIGINT)
    code, said = job.end()

    assert (code, "at once" in said) == (1, True)
    assert not any(map(alive, ranks))


def test_a_node_that_joins_late_is_taken_in(launch: Launchers) -> None:
    _, where = launch.store()
    options = ("--nproc", "1", "--nnodes", "1:2", "--store", where)
    first = launch(*options, program=WORLDS)
    first.until(first.steps)

    second = launch(*options, program=WORLDS)
    second.until((second.out / "world-2").exists)
    for job in (first, second):
        job.ask(signal.SIGTERM)

    assert [job.end()[0] for job in (first, second)] == [75, 75]
    assert max(first.checkpoints()) > 0  # the first rank saved before it met the other


def test_a_killed_launcher_leaves_no_rank(launch: Launchers) -> None:
    job = launch("--nproc", "2", program=DEAF)
    job.until(lambda: len(job.ranks()) == 2 and job.steps())
    ranks = job.ranks()

    os.kill(job.process.pid, signal.SIGKILL)
    job.process.wait()
    while any(map(alive, ranks)):
        time.sleep(0.05)


def test_a_job_that_does_not_move_ends_after_3_rounds_and_names_the_rank_that_failed(launch: Launchers) -> None:
    code, said = launch("--nproc", "2", program=RAISES).end()

    assert code == 1
    assert said.count("restarting") == 2
    assert "no new step in 3 rounds: rank 1 ended with exit code 1: ValueError: no such layer" in said
    assert "raise ValueError" in said  # the last lines of its error


def test_a_rank_that_does_nothing_tells_where_it_stands_and_is_started_again(launch: Launchers) -> None:
    code, said = launch("--set", "health.step_seconds=1", "--set", "health.hang_seconds=2", program=HANGS_ONCE).end()

    log = next((launch.folder / "out" / "logs").rglob("round-0/rank-0.log")).read_text()
    assert code == 0
    assert "rank 0 showed no sign of life for" in said
    assert "rank 0 was killed by SIGKILL; restarting" in said
    assert "(most recent call first)" in log
    assert "in main" in log


def test_store_and_launcher_take_the_key_from_standard_input_which_stays_their_lease(launch: Launchers) -> None:
    key = "0123456789abcdef" * 4 + "\n"
    store = launch.python("-m", "training", "store", "--bind", "127.0.0.1", "--store-key", "-")
    assert store.stdin is not None
    assert store.stdout is not None
    os.write(store.stdin.fileno(), key.encode())
    where = json.loads(store.stdout.readline())
    at = f"{where['address']}:{where['port']}"
    job = launch("--store", at, "--store-key", "-", "--attached", program=WAITS)
    assert job.process.stdin is not None
    os.write(job.process.stdin.fileno(), key.encode())
    job.until(job.steps)

    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in (store.pid, job.process.pid, *job.ranks())]
    environments = [Path(f"/proc/{pid}/environ").read_text() for pid in job.ranks()]
    job.hang_up()
    store.stdin.close()

    assert job.end()[0] == 75
    assert store.wait() == 0
    assert not [text for text in (*commands, *environments) if key.strip() in text]


def test_a_launcher_with_another_key_ends_in_a_line(launch: Launchers) -> None:
    _, where = launch.store()

    code, said = launch("--store", where, program=WAITS, GPUFLEET_STORE_KEY="x" * 64).end()

    assert (code, said) == (1, f"launch: the rendezvous store at {where} has another key than this launcher\n")
