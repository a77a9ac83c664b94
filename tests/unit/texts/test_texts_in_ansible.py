"""Whatever a handover or a node's report holds, the real Ansible takes it for text: it runs and changes nothing.

The handover is written past the stack file's own patterns, which would refuse most of these texts.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from payloads import MARKS, payloads
from pydantic import BaseModel

from infra.handover import Group, Handover, Node, Storage
from infra.printable import one_line

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
PROGRAMS = Path(sys.executable).parent
TEXTS = [each for each in payloads() if len(each) < 400]
COUNT = 20  # of nodes, groups and storage
NO_NAMES = ["../../x", "-oProxyCommand=id", "a b", "{{ 1 }}", "a\nb", "", "localhost", "x/../y", "ä"]
# What the inventory and group_vars say of a node without its facts, a role's variables, and a unit made of them.
SEE = """\
{% for host in ansible_play_hosts %}{% set known = hostvars[host] %}{% set _ = seen.update({host: {
  'node': known.gpufleet_node, 'group': known.gpufleet_group, 'host': known.ansible_host, 'etc': known.gpufleet_etc,
  'not_ready': known.gpufleet_not_ready, 'self': known.gpufleet_self, 'ssh': known.ansible_ssh_common_args,
  'disks': known.gpufleet_disks, 'prefix': known.gpufleet_prefix}}) %}{% endfor %}
{% for each in gpufleet.storage[:3] %}{% set _ = units.append(
  lookup('template', playbooks ~ '/roles/mounts/templates/mount.j2', template_vars={'item': each})) %}{% endfor %}
{{ {'nodes': seen, 'gpufleet': gpufleet, 'expected': verify_expected} | to_json }}"""
PLAY = {
    "hosts": "gpu_nodes",
    "gather_facts": False,
    "connection": "local",
    "vars_files": [str(PLAYBOOKS / "roles/verify/defaults/main.yml")],
    "vars": {"mounts_client": {"before": "", "type": "nfs", "options": []}, "playbooks": str(PLAYBOOKS)},
    "tasks": [
        {
            "name": "Template all that is known of every node",
            "run_once": True,
            "become": False,
            "vars": {"ansible_python_interpreter": sys.executable, "seen": {}, "units": []},
            "copy": {"dest": "{{ lookup('env', 'SEEN') }}", "content": SEE},
        }
    ],
}


def whole(kind: Any, texts: Iterator[str]) -> Any:
    """A value of this type whose texts are the next ones, so that a field that is new has one of them, too."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return whole(inner[0], texts)
    if origin in (Union, UnionType, Literal):
        first = next(each for each in inner if each is not type(None))
        return first if origin is Literal else whole(first, texts)
    if origin is tuple:
        return [whole(inner[0], texts) for _ in range(2)]
    if origin is dict:
        return {next(texts): whole(inner[1], texts) for _ in range(2)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: whole(field.annotation, texts) for name, field in kind.model_fields.items()}
    return next(texts) if kind in (str, Any) else {int: 1, float: 0.5, bool: True}[kind]


def handover() -> dict[str, Any]:
    """Every field of every part holds one of the texts, and every text is in many fields."""
    texts = itertools.cycle(TEXTS)
    return {
        **whole(Handover, texts),
        "groups": [{**whole(Group, texts), "name": f"g-{i}"} for i in range(COUNT)],
        "nodes": [{**whole(Node, texts), "name": f"n-{i}", "group": f"g-{i}"} for i in range(COUNT)],
        "storage": [whole(Storage, texts) for _ in range(COUNT)],
    }


def texts_in(value: Any) -> int:
    if isinstance(value, dict):
        return sum(1 + texts_in(each) for each in value.values())
    return sum(map(texts_in, value)) if isinstance(value, list) else int(isinstance(value, str))


@pytest.fixture
def marks() -> Iterator[Path]:
    """Where what was run leaves its mark."""
    shutil.rmtree(MARKS, ignore_errors=True)
    Path(MARKS).mkdir()
    yield Path(MARKS)
    shutil.rmtree(MARKS)


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """The handover, beside which each node's report holds all texts."""
    document = handover()
    (tmp_path / "handover.json").write_text(json.dumps(document))
    (tmp_path / "handover.reports").mkdir()
    checks = [{"name": "gpus", "ok": False, "detail": text} for text in TEXTS]
    for node in document["nodes"]:
        report = {"node": node, "ready": False, "time": None, "checks": checks}
        (tmp_path / "handover.reports" / f"{node['name']}.json").write_text(json.dumps(report))
    return document


def run(tmp_path: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
        "GPUFLEET_HANDOVER": str(tmp_path / "handover.json"),
        "SEEN": str(tmp_path / "seen.json"),
        "LC_ALL": "C.UTF-8",
        "PATH": os.pathsep.join([str(PROGRAMS), "/usr/bin", "/bin"]),
        "HOME": str(tmp_path),
    }
    return subprocess.run([*command], env=settings, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_ansible_runs_no_text_of_the_inventory_and_hands_each_on_as_it_is(
    tmp_path: Path, document: dict[str, Any], marks: Path
) -> None:
    (tmp_path / "play.yml").write_text(json.dumps([PLAY]))

    listed = run(tmp_path, PROGRAMS / "ansible-inventory", "-i", PLAYBOOKS / "inventory", "--list")
    played = run(tmp_path, PROGRAMS / "ansible-playbook", "-i", PLAYBOOKS / "inventory", tmp_path / "play.yml")

    assert list(marks.iterdir()) == []
    assert (listed.returncode, played.returncode) == (0, 0), listed.stderr + played.stdout + played.stderr
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["gpufleet"] == document
    assert seen["expected"]["storage"] == [each["path"] for each in document["storage"] if each["path"]]
    for node, group in zip(document["nodes"], document["groups"], strict=True):
        known, prefix = seen["nodes"][node["name"]], node["prefix"].rstrip("/")
        assert (known["node"], known["group"]) == (node, group)
        assert (known["host"], known["prefix"], known["etc"]) == (node["address"], prefix, f"{prefix}/etc/gpufleet")
        assert all(one_line(text).strip() in known["not_ready"] for text in TEXTS)
    print(f"{texts_in(document)} texts in the handover, {len(TEXTS)} kinds: 0 executed")


@pytest.mark.parametrize("text", NO_NAMES)
@pytest.mark.parametrize("kind", ["nodes", "groups"])
def test_a_name_that_is_none_is_refused_in_one_line(
    tmp_path: Path, document: dict[str, Any], kind: str, text: str
) -> None:
    document[kind][1]["name"] = text
    (tmp_path / "handover.json").write_text(json.dumps(document))

    answer = run(tmp_path, sys.executable, PLAYBOOKS / "inventory", "--list")

    assert (answer.returncode, answer.stdout) == (1, "")
    (line,) = answer.stderr.splitlines()
    assert "which no node or group can have" in line
    assert line.isprintable()
