"""The action that runs our programs on nodes, played by the real Ansible on this computer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
ODD = ["", "two words", 'it\'s "quoted"', "$HOME `id`", "日本\n語"]
TELL = """import json, sys
print(json.dumps({"argv": sys.argv, "stdin": sys.stdin.read(), "line": open("/proc/self/cmdline").read()}))
"""


def played(folder: Path, program: str, task: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    """What the action returned for a program, which stands beside the play. Where it is to fail, `ignore_errors`: the
    next task keeps how."""
    (folder / "files").mkdir()
    (folder / "files" / "told.py").write_text(program)
    run = {"name": "Run it", "python_program": {"file": "told.py", **task}, "register": "ran", **keywords}
    keep = {"name": "Keep it", "copy": {"content": "{{ ran | to_json }}", "dest": str(folder / "ran.json")}}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [run, {**keep, "check_mode": False}]}
    (folder / "play.yml").write_text(json.dumps([play]))
    told = {"ANSIBLE_ACTION_PLUGINS": str(PLAYBOOKS / "action_plugins"), "LC_ALL": "C.UTF-8"}
    line = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-c", "local", folder / "play.yml"]
    line += ["-e", f"ansible_python_interpreter={sys.executable}"]
    ran = subprocess.run(line, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads((folder / "ran.json").read_text())


def test_a_program_is_given_its_arguments_and_its_input_as_they_are(tmp_path: Path):
    ran = played(tmp_path, TELL, {"arguments": ODD, "stdin": "".join(ODD)})
    told = json.loads(ran["stdout"])
    assert (told["argv"], told["stdin"]) == (["told.py", *ODD], "".join(ODD))
    assert (ran["rc"], ran["changed"]) == (0, True)


def test_no_process_shows_what_a_program_is_given(tmp_path: Path):
    ran = played(tmp_path, TELL, {"arguments": ["an argument"], "stdin": "an input"})
    assert json.loads(ran["stdout"])["line"] == f"{sys.executable}\0-I\0-\0"


def test_what_it_prints_has_no_empty_lines_at_its_end(tmp_path: Path):
    ran = played(tmp_path, "import sys\nprint()\nprint('why\\n', file=sys.stderr)\n", {})
    assert (ran["stdout"], ran["stdout_lines"]) == ("", [])
    assert (ran["stderr"], ran["stderr_lines"]) == ("why", ["why"])


def test_the_interpreter_can_be_another_one(tmp_path: Path):
    other = tmp_path / "an interpreter"
    other.write_text(f'#!/bin/sh\nOTHER=1 exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    ran = played(tmp_path, "import os\nprint(os.environ['OTHER'])\n", {"interpreter": str(other)})
    assert ran["stdout_lines"] == ["1"]


def test_a_program_that_fails_fails_the_task_and_names_its_own_line(tmp_path: Path):
    ran = played(tmp_path, "x = 1\nraise SystemExit(x / 0)\n", {}, ignore_errors=True)
    assert (ran["failed"], ran["rc"], ran["msg"]) == (True, 1, "non-zero return code")
    assert 'File "told.py", line 2' in ran["stderr"]
    assert ran["stderr_lines"][-1] == "ZeroDivisionError: division by zero"


def test_in_check_mode_nothing_runs_unless_the_task_says_so(tmp_path: Path):
    ran = played(tmp_path, f"open({str(tmp_path / 'left')!r}, 'w')\n", {}, check_mode=True)
    assert ran["skipped"]
    assert not (tmp_path / "left").exists()


def test_a_wrong_option_is_refused(tmp_path: Path):
    ran = played(tmp_path, "", {"argument": ["x"]}, ignore_errors=True)
    assert ran["failed"]
    assert "argument" in ran["msg"]


def test_what_says_too_much_has_failed_and_is_not_kept(tmp_path: Path):
    ran = played(tmp_path, "print('x' * (5 << 20))\n", {}, ignore_errors=True)
    assert (ran["failed"], ran["msg"]) == (True, "told.py says more than 4 MiB")
    assert "stdout" not in ran
