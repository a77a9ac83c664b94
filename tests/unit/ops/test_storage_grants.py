"""What a run may do in buckets: below the prefix that its job uploads to, and nowhere else."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from test_as_job import cluster

from infra.handover import Handover, Storage
from ops.errors import CommandError
from ops.jobs import ssh as jobs
from ops.jobs import storage_grants
from ops.jobs.base import Job
from ops.jobs.runs import Run
from ops.jobs.ssh import SshRunner
from ops.nodes import ssh

ROLE = "arn:aws:iam::123456789012:role/storage-role"


def handover(role: str = ROLE) -> Handover:
    whole, _ = cluster("/")
    data = Storage(name="data", path="/data", kind="bucket", source="stack-data")
    return whole.model_copy(update={"storage": (data,), "storage_role": role})


def test_a_run_may_write_below_the_prefix_that_it_uploads_to() -> None:
    grant = json.loads(storage_grants.of_run(handover(), "s3://stack-data/runs/a"))

    assert grant == {"places": [{"bucket": "stack-data", "prefix": "runs/a/", "mode": "upload"}]}


@pytest.mark.parametrize(("role", "upload"), [(ROLE, None), (ROLE, "s3://other/a"), ("", "s3://stack-data/a")])
def test_a_run_without_an_upload_to_a_bucket_of_the_stack_gets_nothing(role: str, upload: str | None) -> None:
    assert storage_grants.of_run(handover(role), upload) == ""


@pytest.mark.parametrize(
    "prefix", ["", "/", "tenants/ada", "tenants", "a/../tenants/ada", "*", "${aws:username}", "a//b", "a" * 600, "./a"]
)
def test_a_prefix_that_is_not_one_runs_own_is_refused(prefix: str) -> None:
    with pytest.raises(CommandError, match=r"^checkpoint\.upload: s3://stack-data/") as refused:
        storage_grants.of_run(handover(), f"s3://stack-data/{prefix}")

    assert refused.value.code == 2


def test_the_nodes_take_the_same_prefixes() -> None:
    file = Path(__file__).parents[3] / "playbooks/roles/storage_sessions/files/grants.py"
    assert runpy.run_path(str(file))["PREFIX"] == storage_grants.PREFIX


def test_root_starts_the_launcher_with_the_grant(tmp_path: Path) -> None:
    (tmp_path / "place").write_text("a-1-0000")
    grant = storage_grants.of_run(handover(), "s3://stack-data/runs/a")

    job = Job(Run(tmp_path), "steps = 1\n", (), False, "`gpufleet train`")

    line = SshRunner(handover(), handover(), job, grant)._launch(handover().nodes[0], "a.toml", "")

    assert f"{storage_grants.RUNNING} {ssh.JOB_LOGIN} a-1-0000 '{grant}' {ssh.AS_JOB} /opt/gpufleet" in line
    assert line.startswith("exec sudo -n env PYTHONPATH=")


def test_a_node_of_an_earlier_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "ssh", lambda _handover, _node, remote: ["sh", "-c", remote])
    monkeypatch.setattr(ssh, "AS_JOB", "/bin/true")
    (tmp_path / "place").write_text("a-1-0000")

    with pytest.raises(CommandError, match=r"^n-1 gives no storage sessions yet: `gpufleet up x` sets them up$"):
        jobs._ship(handover(), handover().nodes[0], Run(tmp_path), "steps = 1")
