"""The launcher's own judgement: does the job move, who failed first, where is this node."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from torch.distributed.elastic.multiprocessing import ProcessFailure

from training.elastic.exit_codes import say
from training.elastic.failures import Logs, error_file, first_failure, own_folder
from training.elastic.progress import Progress, newest_step
from training.elastic.rendezvous.endpoint import Endpoint, Nodes
from training.elastic.stdout_relay import Relay
from training.elastic.supervise import set_rank_environment
from training.elastic.system import address_towards, interface_of
from training.elastic.worker import ERROR_FILE, note_error


def reached(out: Path, step: int, rank: int = 0) -> None:
    (out / "progress").mkdir(exist_ok=True)
    (out / "progress" / f"rank-{rank}.json").write_text(json.dumps({"step": step}))


def test_the_newest_step_is_the_newest_of_checkpoints_and_records(tmp_path: Path) -> None:
    assert newest_step(tmp_path) == 0
    reached(tmp_path, 7)
    reached(tmp_path, 6, rank=2)
    assert newest_step(tmp_path) == 7

    (tmp_path / "checkpoints" / "step-00000020").mkdir(parents=True)
    for name in (".step-00000030.tmp", "damaged-step-00000030", "step-30"):  # never committed, and no checkpoint
        (tmp_path / "checkpoints" / name).mkdir()
    assert newest_step(tmp_path) == 20


def test_rounds_that_repeat_old_steps_are_no_progress(tmp_path: Path) -> None:
    reached(tmp_path, 50)
    progress = Progress(tmp_path)

    for step in (48, 50, 49):
        assert not progress.stalled
        reached(tmp_path, step)
        progress.round_failed()

    assert progress.stalled


def test_one_new_step_starts_the_count_again(tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    progress.round_failed()
    progress.round_failed()
    reached(tmp_path, 1)
    progress.round_failed()
    progress.round_failed()

    assert not progress.stalled


def failed(logs: Logs, rank: int, code: int, error: str = "", time: float = 0.0) -> ProcessFailure:
    if error:
        error_file(logs.file_of[rank]).write_text(json.dumps({"error": error, "time": time}))
    return ProcessFailure(local_rank=rank, pid=1, exitcode=code, error_file="")


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    logs = Logs(tmp_path)
    logs.reify({local: {"RANK": str(local)} for local in range(3)})
    for file in logs.file_of.values():
        file.write_text("Traceback …\nlast words\n")
    return logs


def test_each_round_has_a_place_for_nccls_record_of_its_last_collectives(tmp_path: Path) -> None:
    logs, ranks = Logs(tmp_path), {local: {"RANK": str(local + 4)} for local in range(2)}

    for number in range(2):
        logs.reify(ranks)
        for env in ranks.values():  # NCCL puts the rank behind it
            assert env["TORCH_FR_DUMP_TEMP_FILE"] == str(tmp_path / f"round-{number}" / "flight-of-rank-")
            assert env["TORCH_FR_DUMP_ON_TIMEOUT"] == "1"
            assert int(env["TORCH_FR_BUFFER_SIZE"]) > 0


def test_a_container_that_is_started_again_keeps_the_logs_of_its_first_start(tmp_path: Path) -> None:
    for _ in range(2):  # under the same host name and pid, within a second
        logs = Logs(own_folder(tmp_path))
        logs.reify({0: {"RANK": "0"}})
        logs.file_of[0].write_text("last words")

    assert len([*tmp_path.rglob("round-0/rank-0.log")]) == 2


def test_a_killed_rank_is_named_before_those_that_lost_it(logs: Logs) -> None:
    failures = {0: failed(logs, 0, 1, "RuntimeError: closed by peer", 5.0), 2: failed(logs, 2, -signal.SIGKILL)}

    assert first_failure(failures, logs).line() == "rank 2 was killed by SIGKILL"


def test_the_earliest_error_is_named(logs: Logs) -> None:
    failures = {
        0: failed(logs, 0, 1, "RuntimeError: closed by peer", 5.2),
        1: failed(logs, 1, 1, "ValueError: no such layer", 5.1),
    }
    first = first_failure(failures, logs)

    assert first.line() == "rank 1 ended with exit code 1: ValueError: no such layer"
    assert "last words" in first.full()
    assert str(logs.file_of[1]) in first.full()


def test_a_rank_that_the_agent_ended_later_is_not_to_blame(logs: Logs) -> None:
    late = failed(logs, 0, -signal.SIGKILL)
    late.timestamp += 30

    assert first_failure({0: late, 1: failed(logs, 1, 1, "ValueError: x", 5.0)}, logs).rank == 1


def test_a_lost_connection_is_told_in_words(logs: Logs) -> None:
    error = "RuntimeError: [pair.cc:561] Connection closed by peer [127.0.0.1]:34966. GLHF!"

    said = first_failure({0: failed(logs, 0, 1, error, 5.0)}, logs).line()

    assert said == "rank 0 ended with exit code 1: lost its connection to another rank"


@pytest.mark.parametrize("torn", [b"", b'{"time": 5.0, "err', b"\xe2\x80"])
def test_a_note_that_a_full_disk_tore_counts_as_none(logs: Logs, torn: bytes) -> None:
    failures = {0: failed(logs, 0, 1)}
    error_file(logs.file_of[0]).write_bytes(torn)

    assert first_failure(failures, logs).line() == "rank 0 ended with exit code 1: last words"


def test_an_error_that_cannot_be_noted_is_still_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ERROR_FILE, "/dev/full")
    error = ValueError("no such layer")

    note_error(ValueError, error, None)

    assert capsys.readouterr().err == "ValueError: no such layer\n"


def test_a_log_on_a_full_disk_ends_neither_the_ranks_nor_their_launcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full, before = os.open("/dev/full", os.O_WRONLY), os.dup(1)
    os.dup2(full, 1)
    try:
        with Relay():
            os.write(1, b"x" * 2**18)  # more than a pipe holds
    finally:
        os.dup2(before, 1)
    monkeypatch.setattr("sys.stderr", os.fdopen(full, "w"))
    say("this cannot be written")


def test_nodes_and_store_are_read_from_the_command_line() -> None:
    assert Nodes.parse("2") == Nodes(2, 2)
    assert Nodes.parse("1:4") == Nodes(1, 4)
    assert Endpoint.parse("head.example:29400") == Endpoint("head.example", 29400)


def test_the_nodes_of_a_store_on_loopback_meet_on_loopback() -> None:
    assert address_towards("127.0.0.9") == "127.0.0.1"
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.1") is None


def test_what_a_person_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "5", "GLOO_SOCKET_IFNAME": "eth9"})
    set_rank_environment("127.0.0.1", 2)

    assert os.environ == {"OMP_NUM_THREADS": "5", "GLOO_SOCKET_IFNAME": "eth9"}


def test_ranks_share_the_cores_of_their_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    set_rank_environment("127.0.0.1", 3)

    assert os.environ == {"OMP_NUM_THREADS": "2", "GLOO_SOCKET_IFNAME": "lo"}
