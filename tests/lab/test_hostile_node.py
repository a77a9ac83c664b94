"""A node that somebody has taken over, and an honest one beside it, over real SSH."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from ssh_hosts import Site

from infra.handover import Handover
from ops.commands import status
from ops.jobs.base import Event
from ops.jobs.workers import Worker, Workers
from ops.nodes import ssh

GOOD = {"ready": True, "time": "t", "checks": [{"name": "facts", "ok": True, "detail": ""}]}
FORGED = "lost\x1b[1A\x1b[2K\n  node-2       127.0.0.12       ready\u202e"
STEP = {"event": "step", "step": 5, "steps": 10, "loss": 2.0, "samples_per_second": 9.5}


@pytest.fixture
def cluster(site: Site) -> Handover:
    """The honest node is the second one."""
    cluster = Handover.model_validate(site.handover)
    ready = Path(cluster.nodes[1].prefix) / "var/lib/gpufleet/ready.json"
    ready.parent.mkdir(parents=True, exist_ok=True)
    ready.write_text(json.dumps(GOOD))
    return cluster


def place(cluster: Handover) -> Path:
    """Where the first node's report is."""
    file = Path(cluster.nodes[0].prefix) / "var/lib/gpufleet/ready.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    return file


def lines(cluster: Handover) -> list[str]:
    cost = {"hourly": None, "unknown": "nobody"}
    states = [state.as_json() for state in ssh.states(cluster)]
    return status.text({"stack": "s", "cloud": "c", "nodes": states, "run": None, "cost": cost}).splitlines()


@pytest.mark.parametrize(
    "report",
    [
        json.dumps({"ready": False, "checks": [{"name": FORGED, "ok": False, "detail": FORGED}]}),
        FORGED,
        "[" * 100_000,
        "x" * 10_000_000,
        json.dumps({**GOOD, "checks": []}),
        json.dumps({"ready": "yes"}),
    ],
    ids=["forged", "no JSON", "deep", "long", "nothing checked", "other types"],
)
def test_a_lying_node_has_a_line_of_its_own_and_the_other_is_ready(cluster: Handover, report: str) -> None:
    place(cluster).write_text(report)

    head, first, second, *rest = lines(cluster)

    assert "not ready" in first
    assert all(line.isprintable() for line in (head, first, second))
    assert (second.split()[2:], len(rest)) == (["ready"], 2)


def test_a_node_that_never_ends_its_report_holds_nobody_up(cluster: Handover, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = place(cluster)
    os.mkfifo(pipe)
    monkeypatch.setattr(ssh, "REPORT_SECONDS", 15.0)

    _, first, second, *_ = lines(cluster)

    assert "sends an unreadable report: no complete output within 15 s" in first
    assert second.split()[2:] == ["ready"]
    with suppress(OSError):  # on a slow computer none has come yet
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))  # ends the reader that waits there on the node


def test_a_lying_launcher_is_followed_to_its_end(cluster: Handover, tmp_path: Path) -> None:
    flood = "head -c 20000000 /dev/zero; echo"
    said = [f"printf '%s\\n' {text}" for text in (f"'{json.dumps({**STEP, 'step': 'x'})}'", f"'{json.dumps(STEP)}'")]
    events: list[Event] = []

    worker = Worker.start(
        cluster, cluster.nodes[0], "; ".join([said[0], flood, said[1], "printf '\\033[2J\\n' >&2; exit 3"])
    )
    launchers = Workers([worker])
    launchers.follow(tmp_path / "events.jsonl", events.append)
    launchers.stop()

    assert events == [STEP]
    assert (tmp_path / "events.jsonl").read_text() == json.dumps(STEP) + "\n"
    assert launchers.codes == [3]
    assert all(line.isprintable() for line in launchers.complaints())
