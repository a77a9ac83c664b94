"""How `gpufleet train` starts programs on nodes: as the login of jobs on machines, as itself on process nodes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from infra.handover import Access, Environment, Group, Handover, Node, Store
from ops.errors import CommandError
from ops.jobs import rendezvous
from ops.jobs import ssh as jobs
from ops.jobs.runs import Run
from ops.nodes import ssh


def cluster(prefix: str) -> tuple[Handover, Node]:
    node = Node(name="n-1", group="g", address="127.0.0.1", port=22, host_key="ssh-ed25519 A", prefix=prefix)
    handover = Handover(
        stack="x",
        cloud="local",
        region=None,
        access=Access(user="ops", key_file="/k", known_hosts_file="/h"),
        nodes=(node,),
        groups=(Group(name="g", count=1, gpu=None, gpus_per_node=0, fabric="none"),),
        storage=(),
        store=Store(host="control", address="127.0.0.1"),
        environment=Environment(python="/opt/gpufleet/venv/bin/python"),
    )
    return handover, node


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "place").write_text("a-1-0000")
    return Run(tmp_path)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """This computer answers for every node."""
    monkeypatch.setattr(ssh, "ssh", lambda _handover, _node, remote: ["sh", "-c", remote])


def test_on_a_machine_root_starts_the_launcher_as_the_login_of_jobs() -> None:
    line = rendezvous.python(*cluster("/"), ["-m", "training", "launch", "a b.toml"], {"NCCL_IB_HCA": "=mlx5_0; id"})

    assert line == (
        "exec sudo -n env PYTHONPATH=\"$(readlink -f /opt/gpufleet/current)\" NCCL_IB_HCA='=mlx5_0; id' "
        "/usr/local/lib/gpufleet/as-job /opt/gpufleet/venv/bin/python -m training launch 'a b.toml'"
    )


def test_a_node_that_is_only_a_process_starts_it_as_itself() -> None:
    line = rendezvous.python(*cluster("/site/n-1"), ["-m", "training"])

    assert line.startswith('exec env PYTHONPATH="$(readlink -f /site/n-1/opt/gpufleet/current)" /opt/')


@pytest.mark.usefixtures("here")
def test_a_machine_of_an_earlier_version_is_told_with_the_way_on(run: Run) -> None:
    with pytest.raises(CommandError, match=r"^n-1 has no job login yet: `gpufleet up x` creates it$"):
        jobs._ship(*cluster("/"), run, "steps = 1")


@pytest.mark.usefixtures("here")
def test_a_job_file_is_placed_whole_and_not_for_everybody(run: Run, tmp_path: Path) -> None:
    file = Path(jobs._ship(*cluster(str(tmp_path)), run, "steps = 1"))

    assert file.read_text() == "steps = 1"
    assert file.stat().st_mode & 0o007 == 0


@pytest.mark.usefixtures("here")
def test_a_run_that_the_login_of_jobs_cannot_write_is_refused_before_the_job_starts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "var/lib/gpufleet").mkdir(parents=True)
    (tmp_path / "var/lib/gpufleet/runs").write_text("no folder")

    with pytest.raises(CommandError, match=r"^n-1: the job login cannot write: .*: change the owner of that folder"):
        jobs._ship(*cluster(str(tmp_path)), run, "steps = 1")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("planted", ["pipe", "device", "folder", "nothing"])
def test_what_is_no_file_is_not_fetched_and_not_waited_for(run: Run, tmp_path: Path, planted: str) -> None:
    out = tmp_path / "var/lib/gpufleet/runs/a-1-0000"
    out.mkdir(parents=True)
    file = out / "metrics.jsonl"
    if planted == "pipe":
        subprocess.run(["mkfifo", file], check=True)
    elif planted == "device":
        file.symlink_to("/dev/zero")
    elif planted == "folder":
        file.mkdir()

    with pytest.raises(CommandError, match=f"^cannot fetch {file} from n-1: it is not a regular file$"):
        jobs._fetch(*cluster(str(tmp_path)), run)


@pytest.mark.usefixtures("here")
def test_metrics_and_result_are_fetched(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "var/lib/gpufleet/runs/a-1-0000"
    out.mkdir(parents=True)
    step = {"step": 1, "steps": 1, "loss": 0.5, "lr": 0.1, "samples_per_second": 9.5, "seconds": 1.0}
    (out / "metrics.jsonl").write_text(json.dumps(step) + "\n")
    (out / "result.json").write_text('{"steps": 1, "accuracy": null, "seconds": 1.0, "finished": true}')

    result = jobs._fetch(*cluster(str(tmp_path)), run)

    assert [json.loads(line)["step"] for line in (run.folder / "metrics.jsonl").read_text().splitlines()] == [1]
    assert (result["steps"], result["finished"]) == (1, True)
    assert json.loads(run.result.read_text()) == result
