"""What nodes, jobs and clouds say may be anything: a line for each that lies, and the others are shown all the same."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from queue import Queue

import pytest
from hostile import ESCAPE, TEXTS, VALUES, changed, in_place_of

from infra.handover import Access, Environment, Group, Handover, Node, Store
from ops import untrusted
from ops.clouds import discovery
from ops.clouds.aws.tagged_resources import Instance
from ops.commands import doctor, status
from ops.console.terminal import Screen
from ops.engine import processes
from ops.jobs import runs
from ops.jobs.base import Event
from ops.jobs.progress import Progress
from ops.jobs.workers import Worker
from ops.nodes import host_keys
from ops.nodes import ssh as nodes
from ops.project import Project
from ops.untrusted import Report

PROGRAMS = Path(__file__).resolve().parents[3] / "playbooks"
MEMORY_BYTES = 50 * 1024 * 1024
GOOD = {"ready": True, "time": "t", "checks": [{"name": "facts", "ok": True, "detail": ""}]}
BAD = in_place_of(GOOD)
STEP = {"event": "step", "step": 5, "steps": 10, "loss": 2.0, "samples_per_second": 9.5}
EVENTS = [
    STEP,
    {"event": "start", "parameters": 1200, "world_size": 2, "steps": 10},
    {"event": "eval", "step": 5, "accuracy": 0.9, "loss": 0.1, "seconds": 1.0},
    {"event": "result", "steps": 10, "accuracy": 0.9, "seconds": 1.0, "finished": True, "name": "x", "versions": {}},
]


def handover(count: int) -> Handover:
    """Nodes that are reached through a proxy, so that nothing is tried before ssh."""
    return Handover(
        stack="trial",
        cloud="machines",
        region=None,
        access=Access(user="ops", key_file="/k", known_hosts_file="/h"),
        nodes=tuple(
            Node(
                name=f"n-{i}",
                group="n",
                address=f"10.0.{i >> 8}.{i & 255}",
                port=22,
                host_key="k",
                prefix="/",
                proxy="p",
            )
            for i in range(count)
        ),
        groups=(Group(name="n", count=count, gpu=None, gpus_per_node=0, fabric="none"),),
        storage=(),
        store=Store(host="control", address="10.0.0.1"),
        environment=Environment(python="/p"),
    )


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_BYTES, f"{peak / 2**20:.1f} MiB"


@pytest.fixture
def sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of what each node sends, by its address, and an `ssh` that carries it."""
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(f'#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nexec cat "{tmp_path}/${{1#*@}}"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def test_two_hundred_hostile_reports_are_a_line_each_and_the_good_node_is_ready(sends: Path) -> None:
    cluster = handover(len(BAD) + 1)
    for node, report in zip(cluster.nodes, [*BAD, json.dumps(GOOD).encode()], strict=True):
        (sends / node.address).write_bytes(report)

    with little_memory():
        states = nodes.states(cluster)

    assert len(BAD) >= 200
    assert states[-1].state == "ready"
    for state, report in zip(states[:-1], BAD, strict=True):
        assert (state.state == "ready") == passes(report), report[:200]
    cost = {"hourly": None, "unknown": "nobody"}
    text = status.text(
        {"stack": "s", "cloud": "c", "nodes": [state.as_json() for state in states], "run": None, "cost": cost}
    )
    assert len(text.splitlines()) == len(cluster.nodes) + 3
    assert text.replace("\n", "").isprintable()


def passes(report: bytes) -> bool:
    """Whether a report is one after all, as somebody reads it who knows nothing of ours."""
    try:
        document = json.loads(report.decode())
        (check,) = document["checks"]
        texts = isinstance(check["name"], str) and isinstance(check.get("detail", ""), str)
        return (
            texts
            and document["ready"] is True
            and check["ok"] is True
            and isinstance(document.get("time", ""), str | None)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


@pytest.mark.parametrize("flood", ["yes", "yes | tr -d '\\n'", "cat /dev/zero", "yes >&2"])
def test_a_flood_is_not_read_to_its_end(flood: str) -> None:
    with little_memory():
        answer = processes.bounded(["sh", "-c", flood], seconds=600, most=2**18)

    assert answer.returncode == processes.CUT
    assert b"its output exceeds" in answer.stderr


def test_a_node_that_trickles_has_its_time_and_no_more() -> None:
    began = time.monotonic()

    answer = processes.bounded(["sh", "-c", "while :; do echo; sleep 0.1; done"], seconds=0.5, most=2**18)

    assert (answer.returncode, answer.stderr) == (processes.CUT, b"no complete output within 0 s")
    assert time.monotonic() - began < 600  # it would not end by itself


def test_what_is_given_and_what_is_said_pass_whole_where_nobody_lies() -> None:
    given = bytes(range(256)) * 2000

    answer = processes.bounded(["sh", "-c", "cat; echo no >&2; exit 7"], given=given, seconds=600, most=2**20)

    assert (answer.returncode, answer.stdout, answer.stderr) == (7, given, b"no\n")


def test_the_doctor_and_the_inventory_tell_of_every_kept_report(tmp_path: Path) -> None:
    project, cluster = Project(tmp_path), handover(len(BAD) + 1)
    document = tmp_path / "handover.json"
    document.write_text(cluster.model_dump_json())
    folders = [project.reports("trial"), document.with_suffix(".reports")]
    for folder in folders:
        folder.mkdir(parents=True)
    good = json.dumps({"node": cluster.nodes[-1].model_dump(mode="json"), **GOOD}).encode()
    for node, report in zip(cluster.nodes, [*BAD, good], strict=True):
        for folder in folders:
            (folder / f"{node.name}.json").write_bytes(report)

    with little_memory():
        verdicts = doctor.read(project, cluster)
    answer = subprocess.run(
        [sys.executable, PROGRAMS / "inventory", "--list"],
        env={"GPUFLEET_HANDOVER": str(document)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert [node["ready"] for node in verdicts["nodes"]] == [*map(passes, BAD), True]
    assert all(line.isprintable() for line in doctor.text(verdicts).splitlines())
    assert json.loads(answer.stdout)["ready"]["hosts"] == [cluster.nodes[-1].name]
    assert answer.stdout.isascii()


def test_a_verification_keeps_every_report_and_an_unreadable_one_as_such(tmp_path: Path) -> None:
    good, texts = json.dumps(GOOD), [report.decode(errors="replace") for report in BAD if report.strip()]
    rows = [{"node": {"name": f"n-{i}"}, "report": text} for i, text in enumerate([*texts, good])]
    program = PROGRAMS / "roles/verify/files/collect.py"

    answer = subprocess.run(
        [sys.executable, program, tmp_path],
        input="\n".join(map(json.dumps, rows)),
        capture_output=True,
        text=True,
        check=True,
    )

    *others, last = answer.stdout.splitlines()
    assert len(others) == len(texts)
    assert last.split()[1] == "ready"
    assert all(line.isprintable() for line in others)
    reports = [untrusted.parsed(Report, (tmp_path / f"n-{i}.json").read_bytes()) for i in range(len(rows))]
    assert sum(report.ready for report in reports) == sum(
        line.split()[1] == "ready" for line in answer.stdout.splitlines()
    )


def test_hostile_event_lines_are_words_and_the_run_is_followed_on(tmp_path: Path) -> None:
    lines = [json.dumps(variant).encode() for event in EVENTS for value in VALUES for variant in changed(event, value)]
    output = [line for line in [*TEXTS, *lines] if b"\n" not in line]
    (tmp_path / "said").write_bytes(b"\n".join([*output, json.dumps(STEP).encode()]) + b"\n")
    process = subprocess.Popen(
        ["sh", "-c", 'cat "$0"; head -c 200000000 /dev/zero', tmp_path / "said"], stdout=subprocess.PIPE
    )
    worker, events = Worker(Node.model_construct(name="node-1"), process), Queue[tuple[Worker, Event | None]]()
    screen = Screen(file=StringIO(), force_terminal=False)

    with little_memory():
        worker.read(events)
        process.wait()
        with Progress(screen, quiet=False) as progress:
            heard = list(iter(lambda: events.get()[1], None))
            for event in heard:
                progress.event(event)

    assert len(output) >= 200
    assert heard[-1] == STEP
    assert len(json.dumps(heard)) < 2**20
    assert all(word.isprintable() for word in worker.output)


def test_hostile_results_and_events_leave_the_run_a_line(tmp_path: Path) -> None:
    project = Project(tmp_path)
    run = runs.Run(project.runs("s") / "x-1")
    run.folder.mkdir(parents=True)
    for text in in_place_of(EVENTS[-1]):
        run.result.write_bytes(text)
        (run.folder / "events.jsonl").write_bytes(text)

        line = status.run_line(run.as_json())

        assert line.isprintable()
        json.dumps(run.as_json(), allow_nan=False)


@pytest.mark.parametrize("name", [ESCAPE, "-oProxyCommand=id", "../../x", "a b", "{{ 1 }}", "", "a" * 300, "häuser"])
def test_a_machine_that_calls_itself_anything_is_told_and_not_reached(name: str) -> None:
    machine = Instance("i-1", "running", {}, name, "10.0.0.9", "", spot=False, attached=frozenset())

    now = discovery.discovered(handover(1), (), [machine], {"i-1": "ssh-ed25519 AAAA"}, lambda _: "false")

    assert now.handover.nodes == ()
    (state,) = now.others
    assert (state.address, "is not a valid host name" in state.reason) == ("10.0.0.9", True)
    assert f"{state.name}{state.reason}".isprintable()


def test_a_console_gives_a_key_or_nothing(tmp_path: Path) -> None:
    begin, end = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
    consoles = [
        *(text.decode(errors="replace") for text in TEXTS),
        f"{begin}\nssh-ed25519 AAAA\n10.0.0.1 ssh-ed25519 BBBB\n{end}",
        f"{begin}\nssh-ed25519 AAAA,x y\x1b[2J\n{end}",
        f"{begin}" * 1000,
        f"{begin}\nssh-rsa AAAA\n{end}",
    ]
    machine = Instance("i-1", "running", {}, "h", "10.0.0.9", "", spot=False, attached=frozenset())

    for i, console in enumerate(consoles):
        file = tmp_path / f"known_hosts-{i}"
        keys = host_keys.learn([machine], file, lambda _, console=console: console)

        assert keys in ({}, {"i-1": "ssh-ed25519 AAAA"})
        assert file.read_text() == ("i-1,10.0.0.9 ssh-ed25519 AAAA\n" if keys else "")
