"""Roles build on each other, so every node has its own in one order, whichever nodes it is configured with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
PLAY = """
- hosts: all
  gather_subset: ["!all", min]
  roles: [node_stack]
"""
NOTE = """
- name: Note that it ran
  ansible.builtin.lineinfile:
    path: "{{ noted }}/{{ inventory_hostname }}"
    line: "{{ ansible_role_name }}"
    create: true
"""
WANTED = {"plain": ["driver", "containers"], "cut": ["driver", "slices", "containers"]}


def test_a_role_that_only_some_nodes_want_comes_in_its_place(tmp_path: Path) -> None:
    for role in WANTED["cut"]:
        tasks = tmp_path / "roles" / role / "tasks"
        tasks.mkdir(parents=True)
        (tasks / "main.yml").write_text(NOTE)
    hosts = {
        name: {"asked": [{"role": role, "wanted": role in wanted} for role in WANTED["cut"]]}
        for name, wanted in WANTED.items()
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (tmp_path / "play.yml").write_text(PLAY)
    settings = {
        "ansible_python_interpreter": sys.executable,
        "noted": str(tmp_path),
        "node_stack_asked": "{{ asked }}",
        "node_stack_gpus": False,
        "node_stack_software": {},
        "node_stack_software_file": f"{tmp_path}/software",
    }
    ansible = [Path(sys.executable).with_name("ansible-playbook"), "-c", "local", "-i", tmp_path / "hosts.json"]
    environment = {
        "ANSIBLE_ROLES_PATH": f"{tmp_path}/roles:{PLAYBOOKS}/roles",
        "ANSIBLE_ACTION_PLUGINS": f"{PLAYBOOKS}/action_plugins",
        "ANSIBLE_HOME": str(tmp_path),
    }

    subprocess.run(
        [*ansible, "-e", json.dumps(settings), tmp_path / "play.yml"], env=os.environ | environment, check=True
    )

    assert {name: (tmp_path / name).read_text().split() for name in WANTED} == WANTED
