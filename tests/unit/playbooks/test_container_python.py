"""The interpreter that runs inside an image: what it passes to the container engine, and what it keeps to itself."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from driver import NAMED

ROLE = Path(__file__).parents[3] / "playbooks/roles/python_environment"
TEMPLATE = ROLE / "templates/python.j2"
IMAGE = "registry.example/torch@sha256:" + "0" * 64


@pytest.fixture
def said(tmp_path: Path) -> list[str]:
    """The arguments that the engine was started with, and the values that it could read."""
    python, engine = tmp_path / "python", tmp_path / "docker"
    text = jinja2.Template(TEMPLATE.read_text()).render(
        python_environment_image=IMAGE,
        python_environment_owner="nobody",
        python_environment_options=[*NAMED, "--volume=/data:/data"],
    )
    python.write_text(text)
    engine.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "SECRET is $TOKEN"\n')
    for program in (python, engine):
        program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TOKEN": "s3cret", "RANK": "3", "PYTHONPATH": "/x"}
    ran = subprocess.run(
        [python, "-m", "training", "a b"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def test_the_command_runs_in_the_image_word_by_word(said: list[str]) -> None:
    assert said[said.index(IMAGE) :][:5] == [IMAGE, "python", "-m", "training", "a b"]
    assert {*NAMED, "--volume=/data:/data", "--network=host", "--init"} <= set(said)


def test_a_container_that_root_starts_runs_as_the_login_of_jobs_and_can_become_nobody_else(said: list[str]) -> None:
    nobody = pwd.getpwnam("nobody")

    assert {f"--user={nobody.pw_uid}:{nobody.pw_gid}", "--cap-drop=ALL", "--security-opt=no-new-privileges"} <= set(
        said
    )
    assert said.index("--cap-drop=ALL") < said.index(IMAGE)


def test_no_login_of_jobs_is_in_the_group_of_the_container_engine() -> None:
    tasks = "".join(file.read_text() for file in ROLE.parent.glob("*/tasks/*.yml"))

    assert not re.search(r"groups:.*\bdocker\b", tasks)


def test_jobs_are_given_gpus_in_the_way_that_verify_proves() -> None:
    options = yaml.safe_load((ROLE / "vars/main.yml").read_text())["python_environment_options"]

    assert str(list(NAMED)) in options


def test_the_jobs_environment_goes_along_by_name_and_its_values_are_in_no_list_of_processes(said: list[str]) -> None:
    assert {"--env=RANK", "--env=TOKEN"} <= set(said)
    assert not {"--env=PATH", "--env=PYTHONPATH"} & set(said)
    assert [line for line in said if "s3cret" in line] == ["SECRET is s3cret"]
