"""What the doctor makes of the nodes' reports."""

from __future__ import annotations

import json
from pathlib import Path

from infra.handover import Access, Environment, Group, Handover, Node, Store
from ops.commands import doctor
from ops.project import Project

NODES = tuple(
    Node(name=f"trainer-{i}", group="trainer", address=f"10.0.0.{i}", port=22, host_key="k", prefix="/") for i in (1, 2)
)
TOLD = Handover(
    stack="trial",
    cloud="aws",
    region=None,
    access=Access(user="ubuntu", key_file="/k", known_hosts_file="/h"),
    nodes=NODES,
    groups=(Group(name="trainer", count=2, gpu="T4", gpus_per_node=1, fabric="none"),),
    storage=(),
    store=Store(host="control", address="10.0.0.1"),
    environment=Environment(python="/p"),
)
LOST = {"name": "gpus", "ok": False, "detail": "7 of 8 GPUs answer, not number 3: reboot the node"}


def kept(project: Project, name: str, checks: list[dict[str, object]]) -> None:
    folder = project.reports("trial")
    folder.mkdir(parents=True, exist_ok=True)
    ready = all(check["ok"] for check in checks)
    (folder / f"{name}.json").write_text(json.dumps({"node": {}, "ready": ready, "time": "t", "checks": checks}))


def test_every_node_is_told_with_what_failed_and_the_remedy(tmp_path: Path) -> None:
    project = Project(tmp_path)
    kept(project, "trainer-1", [{"name": "facts", "ok": True, "detail": ""}])
    kept(project, "trainer-2", [{"name": "facts", "ok": True, "detail": ""}, LOST])

    document = doctor.read(project, TOLD)

    assert [(node["name"], node["ready"]) for node in document["nodes"]] == [("trainer-1", True), ("trainer-2", False)]
    assert doctor.text(document).splitlines() == [
        "trial · aws",
        "  trainer-1    ready      1 checks passed",
        "  trainer-2    NOT READY  1 checks passed",
        "    gpus         7 of 8 GPUs answer, not number 3: reboot the node",
    ]


def test_a_node_without_a_report_is_not_ready_and_a_gone_node_is_not_told(tmp_path: Path) -> None:
    project = Project(tmp_path)
    kept(project, "trainer-1", [{"name": "facts", "ok": True, "detail": ""}])
    kept(project, "trainer-9", [LOST])

    nodes = doctor.read(project, TOLD)["nodes"]

    assert [(node["name"], node["ready"]) for node in nodes] == [("trainer-1", True), ("trainer-2", False)]
