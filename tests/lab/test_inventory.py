"""The inventory as data: what Ansible is told of a cluster, and the one line a person is told when there is none."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import PLAYBOOKS

from infra.checks.names import OF_EVERY_INVENTORY

HANDOVER: dict[str, Any] = {
    "version": 1,
    "stack": "prod",
    "cloud": "local",
    "region": None,
    "access": {"user": "ops", "key_file": "/site/key", "known_hosts_file": "/my site/known_hosts"},
    "nodes": [
        {"name": "h100-a-1", "group": "h100-a", "address": "10.0.0.11", "port": 22, "host_key": "k1", "prefix": "/"},
        {
            "name": "cpu-1",
            "group": "cpu",
            "address": "127.0.0.11",
            "port": 2222,
            "host_key": "k2",
            "prefix": "/cpu-1",
        },
    ],
    "groups": [{"name": "h100-a"}, {"name": "cpu"}],
    "storage": [],
    "store": {"host": "control", "address": "10.0.0.1"},
    "environment": {"python": "/venv/bin/python"},
}


def ask(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the script as Ansible does: by its first line, with the python3 on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    command = [PLAYBOOKS / "inventory", *arguments]
    return subprocess.run(command, env={"PATH": path, **env}, cwd=cwd, capture_output=True, text=True, check=False)


def told(tmp_path: Path, handover: object) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "handover.json"
    file.write_text(handover if isinstance(handover, str) else json.dumps(handover))
    return ask("--list", GPUFLEET_HANDOVER=str(file))


def read(answer: subprocess.CompletedProcess[str]) -> Any:
    """What was printed, as Ansible's decoder has it: a marked text is the text."""

    def text(value: dict[str, Any]) -> Any:
        return value["__ansible_unsafe"] if value.keys() == {"__ansible_unsafe"} else value

    return json.loads(answer.stdout, object_hook=text)


@pytest.fixture
def listed(tmp_path: Path) -> dict[str, Any]:
    return read(told(tmp_path, HANDOVER))


@pytest.fixture
def hosts(listed: dict[str, Any]) -> dict[str, Any]:
    return listed["_meta"]["hostvars"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").touch()
    return tmp_path


def engine_that(project: Path, script: str) -> None:
    """A stand-in for the engine, chosen by the project's set-up."""
    engine = project / "an engine"
    engine.write_text(f"#!/bin/sh\n{script}\n")
    engine.chmod(0o755)
    (project / ".gpufleet").mkdir()
    (project / ".gpufleet" / "engine").write_text(f"{engine}\n")


def one_line(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == 1
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    return line


def test_every_node_is_a_gpu_node_and_in_the_group_of_its_stack_file(listed: dict[str, Any]) -> None:
    assert listed["gpu_nodes"]["children"] == ["h100-a", "cpu"]
    assert listed["h100-a"] == {"hosts": ["h100-a-1"], "vars": {"gpufleet_group": {"name": "h100-a"}}}
    assert listed["cpu"] == {"hosts": ["cpu-1"], "vars": {"gpufleet_group": {"name": "cpu"}}}


def test_no_node_group_can_have_the_name_of_another_group(listed: dict[str, Any]) -> None:
    own = listed.keys() - {"_meta", *(group["name"] for group in HANDOVER["groups"])}

    assert {name for name in own if "_" not in name} == set(OF_EVERY_INVENTORY) - {"all", "ungrouped"}


def test_the_handover_is_told_once_so_that_a_node_more_does_not_make_all_others_larger(
    tmp_path: Path, listed: dict[str, Any]
) -> None:
    more = [{**HANDOVER["nodes"][1], "name": f"cpu-{number}"} for number in range(2, 20)]
    larger = read(told(tmp_path, {**HANDOVER, "nodes": HANDOVER["nodes"] + more}))

    assert listed["gpu_nodes"]["vars"]["gpufleet"] == HANDOVER
    assert larger["_meta"]["hostvars"]["cpu-1"] == listed["_meta"]["hostvars"]["cpu-1"]


def test_a_node_carries_its_own_facts(hosts: dict[str, Any]) -> None:
    assert hosts["cpu-1"]["gpufleet_node"] == HANDOVER["nodes"][1]
    assert (hosts["cpu-1"]["gpufleet_own_machine"], hosts["cpu-1"]["gpufleet_prefix"]) == (False, "/cpu-1")
    assert (hosts["h100-a-1"]["gpufleet_own_machine"], hosts["h100-a-1"]["gpufleet_prefix"]) == (True, "")
    assert (hosts["cpu-1"]["ansible_host"], hosts["cpu-1"]["ansible_port"]) == ("127.0.0.11", 2222)
    assert (hosts["cpu-1"]["ansible_user"], hosts["cpu-1"]["ansible_ssh_private_key_file"]) == ("ops", "/site/key")


def test_only_a_machine_of_its_own_is_configured_as_root(hosts: dict[str, Any]) -> None:
    assert hosts["h100-a-1"]["ansible_become"] is True
    assert hosts["h100-a-1"]["ansible_python_interpreter"] == "/usr/bin/python3"
    assert hosts["cpu-1"]["ansible_become"] is False


def test_only_host_keys_of_the_handover_are_trusted_even_below_a_folder_with_a_space(hosts: dict[str, Any]) -> None:
    arguments = shlex.split(hosts["cpu-1"]["ansible_ssh_common_args"])

    assert 'UserKnownHostsFile="/my site/known_hosts"' in arguments
    assert {"StrictHostKeyChecking=yes", "GlobalKnownHostsFile=/dev/null", "IdentitiesOnly=yes"} < set(arguments)
    assert arguments[:2] == ["-F", "/dev/null"]


def test_a_node_made_anew_at_the_same_address_never_meets_the_old_connection(tmp_path: Path) -> None:
    anew = {**HANDOVER, "nodes": [{**HANDOVER["nodes"][0], "host_key": "k3"}]}

    old, new = (
        read(told(tmp_path, handover))["_meta"]["hostvars"]["h100-a-1"]["ansible_control_path"]
        for handover in (HANDOVER, anew)
    )

    assert old != new


def test_one_node_is_told_as_in_the_list(tmp_path: Path, hosts: dict[str, Any]) -> None:
    answer = ask("--host", "cpu-1", GPUFLEET_HANDOVER=str(tmp_path / "handover.json"))

    assert read(answer) == hosts["cpu-1"]


def report(tmp_path: Path, node: dict[str, Any], **said: Any) -> None:
    """What verify keeps of a node beside the handover."""
    (tmp_path / "handover.reports").mkdir(exist_ok=True)
    (tmp_path / f"handover.reports/{node['name']}.json").write_text(json.dumps({"node": node, "checks": [], **said}))


def test_only_nodes_that_have_proven_it_are_ready_and_the_others_say_why_not(tmp_path: Path) -> None:
    good, bad = HANDOVER["nodes"]
    report(tmp_path, good, ready=True)
    report(tmp_path, bad, ready=False, checks=[{"name": "gpus", "ok": False, "detail": "{{ lookup('pipe', 'id') }}"}])

    listed = read(told(tmp_path, HANDOVER))

    assert listed["ready"] == {"hosts": ["h100-a-1"]}
    assert listed["_meta"]["hostvars"]["h100-a-1"]["gpufleet_not_ready"] == ""
    assert listed["_meta"]["hostvars"]["cpu-1"]["gpufleet_not_ready"] == "gpus: {{ lookup('pipe', 'id') }}"


def test_machines_that_share_this_computers_cores_are_told_apart(tmp_path: Path, listed: dict[str, Any]) -> None:
    elsewhere = read(told(tmp_path, {**HANDOVER, "cloud": "machines"}))

    assert listed["this_computer"] == {"hosts": ["h100-a-1"]}
    assert elsewhere["this_computer"] == {"hosts": []}


def test_a_node_without_a_report_or_with_that_of_an_older_one_is_not_ready(tmp_path: Path) -> None:
    report(tmp_path, {**HANDOVER["nodes"][0], "host_key": "the one before"}, ready=True)

    listed = read(told(tmp_path, HANDOVER))

    assert listed["ready"] == {"hosts": []}
    reasons = [variables["gpufleet_not_ready"] for variables in listed["_meta"]["hostvars"].values()]
    assert reasons == ["not verified since it was made: run gpu_node.yml", "not verified: run verify.yml"]


def test_an_unknown_node_is_one_line_with_the_known_ones(tmp_path: Path, listed: dict[str, Any]) -> None:
    answer = ask("--host", "cpu-9", GPUFLEET_HANDOVER=str(tmp_path / "handover.json"))

    assert one_line(answer) == "inventory: no node cpu-9: there are h100-a-1, cpu-1"


@pytest.mark.parametrize(
    ("handover", "said"),
    [
        ("{", "is not JSON"),
        ({}, "is no handover of version 1"),
        ([], "is no handover of version 1"),
        ({**HANDOVER, "version": 2}, "is no handover of version 1"),
        ({"version": 1}, "the handover lacks 'groups'"),
    ],
)
def test_a_wrong_handover_is_one_line(tmp_path: Path, handover: object, said: str) -> None:
    assert said in one_line(told(tmp_path, handover))


def test_a_missing_handover_file_is_one_line() -> None:
    answer = ask("--list", GPUFLEET_HANDOVER="/nowhere.json")

    assert one_line(answer) == "inventory: GPUFLEET_HANDOVER: cannot read /nowhere.json: No such file or directory"


def test_the_engine_is_asked_for_the_stack_when_no_file_is_named(project: Path) -> None:
    (project / "out.json").write_text(json.dumps(HANDOVER))
    engine_that(project, 'echo "$@" > asked; cat out.json')

    answer = ask("--list", cwd=project, GPUFLEET_STACK="prod")

    assert read(answer)["h100-a"]["hosts"] == ["h100-a-1"]
    assert (project / "asked").read_text().startswith("stack output cluster --json --stack prod --non-interactive")


def test_a_stack_that_is_not_up_is_one_line_with_the_way_to_start_it(project: Path) -> None:
    engine_that(project, "echo warning >&2; echo \"error: no stack named 'prod' found\" >&2; exit 255")

    said = one_line(ask("--list", cwd=project, GPUFLEET_STACK="prod"))

    assert "stack prod is not up (no stack named 'prod' found): `gpufleet up prod` starts it" in said


def test_no_engine_is_one_line(project: Path) -> None:
    said = one_line(ask("--list", cwd=project))

    assert said == "inventory: no Pulumi engine: run `make setup` in the project, or put `pulumi` on PATH"
