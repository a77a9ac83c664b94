"""No task and no program that runs as root on a node touches files below a folder that others may change.

A rule over all of them: a new task or program is held to it without being named here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
# Modules that write, make, remove, look at or run from paths as root, and the arguments that name these paths.
PATHS = {
    "copy": ("dest",), "template": ("dest",), "file": ("path", "dest", "name", "src"), "lineinfile": ("path",),
    "blockinfile": ("path",), "replace": ("path",), "assemble": ("dest",), "get_url": ("dest",),
    "unarchive": ("dest", "src"), "git": ("dest",), "stat": ("path",), "find": ("paths",), "slurp": ("src",),
    "fetch": ("src",), "tempfile": ("path",), "pip": ("virtualenv",), "cron": ("cron_file",), "ini_file": ("path",),
    "xattr": ("path",), "acl": ("path",), "mount": ("path",), "archive": ("path", "dest"), "script": ("creates",),
}  # fmt: skip
# Modules that touch a home without naming it.
NEVER = {"authorized_key", "known_hosts", "openssh_keypair", "synchronize", "git"}
USER_TOUCHES_HOMES = {"generate_ssh_key", "move_home", "ssh_key_file", "skeleton", "home"}
# Folders of root's own, and those of the node's state: node_facts gives none of them away but the two of LOGINS.
OURS = ("/etc/", "/usr/", "/var/cache/", "/var/run/cdi/", "/opt/gpufleet", "/var/lib/gpufleet/")
LOGINS = ("/etc/munge", "/var/lib/gpufleet/runs", "/var/lib/gpufleet/jobs", "/home/", "/tmp/", "/var/tmp/", "/scratch")
# What may name another path, each with its reason.
BY_DESIGN = {
    ("locked_archive", "Create the folders"): "/var/cache/gpufleet, /usr/local/lib/gpufleet and /opt/amazon",
    ("locked_archive", "Record the installed version"): "/usr/local/lib/gpufleet",
    ("nvidia_sources", "Find other files about the same repositories"): "/etc/apt and /etc/yum.repos.d",
    ("nvidia_sources", "Remove them, since they conflict with the lock"): "what was found there",
    ("tenants", "Deny cron and at, whose jobs run outside the share"): "/etc/cron.deny and /etc/at.deny",
    ("mounts", "Give the mounted folders to the login of jobs"): "the mount point itself, below /",
    ("python_environment", "Install exactly the locked packages"): "below a folder that placed_files has looked at",
    ("slurm_client", "Read the site's binary key"): "on the controlling computer",
}
VARIABLES = {"gpufleet_etc": "/etc/gpufleet", "gpufleet_opt": "/opt/gpufleet", "gpufleet_var": "/var/lib/gpufleet"}
# Calls by which a program writes, and programs that do so below a path that a caller names, with who has looked at it.
WRITES = {"write_text", "write_bytes", "chmod", "chown", "mkdir", "symlink_to", "touch", "hardlink_to", "rename"}
LOOKED_AT = {
    "placed_files/files/write_files.py": "looks itself at every folder above",
    "training_package/files/install_package.py": "/opt/gpufleet, root's",
    "verify/files/checks.py": "/var/lib/gpufleet, root's",
    "verify/files/collect.py": "on the controlling computer",
    "drain/files/drain.py": "/var/lib/gpufleet, root's",
    "preflight/files/measure.py": "/var/lib/gpufleet, which it gives back to root before it writes",
    "signing_keys/files/keyring.py": "/usr/share/keyrings and /etc/pki",
    "dnf_automatic/files/exclude.py": "/etc/dnf",
    "disks/files/disks.py": "mount points below /, and /etc/gpufleet",
    "storage_sessions/files/table.py": "/etc/gpufleet/storage.d, root's, which placed_files has looked at",
    "storage_sessions/files/with_grant.py": "/run/gpufleet/storage.d, root's",
    "hardening/files/apply_with_revert.py": "/etc, and /var/lib/gpufleet, which it gives back to root before it writes",
}


def tasks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All tasks of a list, also those in blocks."""
    for entry in entries:
        for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
            yield from tasks(entry.get(part) or [])
        yield entry


@cache
def variables(role: str) -> dict[str, Any]:
    files = [PLAYBOOKS / "roles" / role / part / "main.yml" for part in ("defaults", "vars")]
    return {
        key: value
        for file in files
        if file.is_file()
        for key, value in (yaml.safe_load(file.read_text()) or {}).items()
    }


def resolved(text: str, role: str, item: Any) -> str:
    """A path with the variables of its role and of its loop in it, as far as these are plain."""
    known = {**variables(role), **VARIABLES}
    for _ in range(5):
        for name in re.findall(r"\{\{ *(\w+)(?: *\| *dirname)? *\}\}", text):
            if isinstance(value := known.get(name), str):
                text = re.sub(rf"\{{\{{ *{name}(?: *\| *dirname)? *\}}\}}", lambda _, value=value: value, text)
        for name in re.findall(r"\{\{ *item\.(\w+) *\}\}", text):
            if isinstance(item, dict) and name in item:
                text = re.sub(rf"\{{\{{ *item\.{name} *\}}\}}", lambda _, name=name: str(item[name]), text)
    return text


def named(task: dict[str, Any], role: str) -> Iterator[tuple[str, str]]:
    """The module and path of each file that a task names."""
    items = task.get("loop") if isinstance(task.get("loop"), list) else [None]
    for key, arguments in task.items():
        module = key.rpartition(".")[2]
        for argument in PATHS.get(module, ()):
            if isinstance(arguments, dict) and argument in arguments:
                for item in items or [None]:
                    yield module, resolved(str(arguments[argument]), role, item)


def all_tasks() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(PLAYBOOKS.glob("roles/*/*/*.yml")):
        if file.parent.name in ("tasks", "handlers"):
            for task in tasks(yaml.safe_load(file.read_text()) or []):
                yield file.parts[-3], task
    for file in sorted(PLAYBOOKS.glob("*.yml")):
        for task in tasks(yaml.safe_load(file.read_text()) or []):
            yield "", task


def faults() -> Iterator[str]:
    for role, task in all_tasks():
        where = (role, str(task.get("name", "")))
        modules = {key.rpartition(".")[2] for key in task}
        if modules & NEVER:
            yield f"{where}: {modules & NEVER} touches files of a home"
        for key, arguments in task.items():
            if key.endswith("builtin.user") and USER_TOUCHES_HOMES & set(arguments):
                yield f"{where}: {USER_TOUCHES_HOMES & set(arguments)} of `user` touches files of a home"
        if (
            where in BY_DESIGN
            or task.get("delegate_to") == "localhost"
            or (task.get("vars") or {}).get("ansible_become") is False
        ):
            continue
        for module, path in named(task, role):
            if not path.startswith(OURS) or path.startswith(LOGINS):
                yield f"{where}: {module} {path}"


def test_no_task_touches_files_below_a_folder_that_others_may_change() -> None:
    assert list(faults()) == []


def test_every_exception_is_a_task() -> None:
    assert {(role, str(task.get("name", ""))) for role, task in all_tasks()} >= set(BY_DESIGN)


@pytest.mark.parametrize(
    "task",
    [
        {"ansible.builtin.copy": {"dest": "/home/{{ item.name }}/.ssh/authorized_keys", "content": ""}},
        {"ansible.builtin.file": {"path": "{{ item }}", "state": "directory"}},
        {"ansible.builtin.template": {"dest": "/scratch/settings"}},
        {"block": [{"ansible.builtin.lineinfile": {"path": "/var/lib/gpufleet/runs/x", "line": "x"}}]},
        {"ansible.posix.authorized_key": {"user": "ada", "key": "x"}},
        {"ansible.builtin.user": {"name": "ada", "generate_ssh_key": True}},
    ],
)
def test_the_rule_finds_such_a_task(task: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [("tenants", part) for part in tasks([{"name": "New", **task}])]
    monkeypatch.setitem(globals(), "all_tasks", lambda: iter(found))

    assert len(list(faults())) == 1


def programs() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PLAYBOOKS.glob("roles/*/files/*.py")):
        yield str(file.relative_to(PLAYBOOKS / "roles")), ast.parse(file.read_text())


def texts(program: ast.Module) -> Iterator[str]:
    """The texts of a program that are paths; its own words are none."""
    for node in ast.walk(program):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/"):
            yield node.value


def writes(program: ast.Module) -> bool:
    calls = (node.func for node in ast.walk(program) if isinstance(node, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr in WRITES for call in calls)


def test_no_program_names_a_folder_that_others_may_change() -> None:
    allowed = {"/var/lib/gpufleet/jobs", "/var/lib/gpufleet/runs"}  # what a reset leaves
    assert {(name, text) for name, tree in programs() for text in texts(tree) if text.startswith(LOGINS)} == {
        ("reset/files/reset.py", path) for path in allowed
    }


def test_a_program_that_writes_does_so_in_folders_that_it_names_or_that_were_looked_at() -> None:
    for name, tree in programs():
        if writes(tree) and name not in LOOKED_AT:
            paths = [text for text in texts(tree) if text.count("/") > 1]
            assert paths, f"{name} writes, and names no folder of root's: look at where, and write it down in LOOKED_AT"
            assert [path for path in paths if path.startswith(LOGINS) and "reset" not in name] == [], name
