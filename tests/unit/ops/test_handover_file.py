"""When the handover that `up` wrote down may be believed without asking the engine."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from infra.handover import Access, Environment, Handover, Store
from ops import stack
from ops.engine.pulumi import Engine
from ops.errors import CommandError
from ops.project import Project

TOLD = Handover(
    stack="x",
    cloud="local",
    region=None,
    access=Access(user="me", key_file="/k", known_hosts_file="/h"),
    nodes=(),
    groups=(),
    storage=(),
    store=Store(host="control", address="127.0.0.1"),
    environment=Environment(python="/p"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Its engine knows the stack, but tells another user than the file does."""
    project = Project(tmp_path)
    project.handover("x").parent.mkdir(parents=True)
    project.handover("x").write_text(TOLD.model_dump_json())
    project.engine_state("x").parent.mkdir(parents=True)
    project.engine_state("x").write_text("{}")
    engines = TOLD.model_copy(update={"access": Access(user="engine", key_file="/k", known_hosts_file="/h")})
    monkeypatch.setattr(Engine, "output", lambda self, name: engines.model_dump(mode="json"))
    return project


def at(file: Path, seconds: int) -> None:
    os.utime(file, (seconds, seconds))


def test_the_file_serves_while_the_engines_state_is_older(project: Project) -> None:
    at(project.engine_state("x"), 100)
    at(project.handover("x"), 200)

    assert stack.handover(project, "x").access.user == "me"


def test_a_newer_state_of_the_engine_is_asked_for(project: Project) -> None:
    at(project.engine_state("x"), 300)
    at(project.handover("x"), 200)

    assert stack.handover(project, "x").access.user == "engine"


def test_a_backend_elsewhere_is_always_asked(project: Project) -> None:
    project.engine_state("x").unlink()

    assert stack.handover(project, "x").access.user == "engine"


@pytest.mark.parametrize(
    "node",
    [
        {"name": "-oProxyCommand=id"},
        {"name": "../../x"},
        {"address": "-oProxyCommand=id"},
        {"name": "a\x1b[2J\nb"},
        {"port": "x"},
    ],
)
def test_a_handover_with_what_is_no_node_is_one_line(project: Project, node: dict[str, str]) -> None:
    right = {"name": "n-1", "group": "n", "address": "10.0.0.1", "port": 22, "host_key": "k", "prefix": "/"}
    project.handover("x").write_text(json.dumps({**TOLD.to_json(), "nodes": [{**right, **node}]}))
    at(project.engine_state("x"), 100)
    at(project.handover("x"), 200)

    with pytest.raises(CommandError, match=r"^the handover of x cannot be read: nodes\.0\.\w+: [\x20-\x7e]+$"):
        stack.handover(project, "x")
