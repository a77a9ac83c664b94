"""The interpreter that runs inside an image: what it passes to the container engine, and what it keeps to itself."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import yaml
from driver import NAMED

from infra.handover import Access, Environment, Handover, Node, Store
from ops.jobs import rendezvous

ROLE = Path(__file__).parents[3] / "playbooks/roles/python_environment"
TEMPLATE = ROLE / "templates/python.j2"
IMAGE = "registry.example/torch@sha256:" + "0" * 64
NODE = Node(name="n", group="g", address="127.0.0.1", port=22, host_key="ssh-ed25519 A", prefix="/")


SAYS = '#!/bin/sh\nprintf "%s\\n" "$@" "SECRET is $TOKEN"\n'
# A container as far as its environment goes: of its own, and of what is named.
RUNS = """#!{python}
import os, sys
words = sys.argv[sys.argv.index({image!r}) + 1 :]
names = [word.removeprefix("--env=") for word in sys.argv if word.startswith("--env=")]
os.execve({python!r}, words, {{name: os.environ[name] for name in names if name in os.environ}})
"""


def started(tmp_path: Path, engine: str, line: str, **environment: str) -> str:
    """What a shell line prints where `python` is the interpreter of jobs and `docker` this program."""
    python, docker = tmp_path / "python", tmp_path / "docker"
    text = jinja2.Template(TEMPLATE.read_text()).render(
        python_environment_image=IMAGE,
        python_environment_owner="nobody",
        python_environment_options=[*NAMED, "--volume=/data:/data"],
    )
    python.write_text(text)
    docker.write_text(engine)
    for program in (python, docker):
        program.chmod(0o755)
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", line], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


@pytest.fixture
def said(tmp_path: Path) -> list[str]:
    """The arguments that the engine was started with, and the values that it could read."""
    line = "python -m training 'a b'"
    return started(tmp_path, SAYS, line, TOKEN="s3cret", RANK="3", PYTHONHOME="/x", PYTHONSTARTUP="/x").splitlines()


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
    assert not {"--env=PATH", "--env=PYTHONHOME", "--env=PYTHONSTARTUP"} & set(said)
    assert [line for line in said if "s3cret" in line] == ["SECRET is s3cret"]


def test_a_job_in_an_image_finds_the_training_package_of_its_node(tmp_path: Path) -> None:
    package = make_package_of_node(tmp_path)
    told = Handover(
        stack="x",
        cloud="machines",
        region=None,
        access=Access(user="u", key_file="/k", known_hosts_file="/h"),
        nodes=(NODE.model_copy(update={"prefix": str(tmp_path)}),),
        groups=(),
        storage=(),
        store=Store(host="control", address="127.0.0.1"),
        environment=Environment(python=str(tmp_path / "python")),
    )
    line = rendezvous.python(told, told.nodes[0], ["-c", "import training; print(training.__file__)"])

    found = started(tmp_path, RUNS.format(python=sys.executable, image=IMAGE), line)

    assert found == f"{package}\n"


def make_package_of_node(prefix: Path) -> Path:
    """The file of the package, behind the link of its version."""
    folder = prefix / "opt/gpufleet/training-1"
    (folder / "training").mkdir(parents=True)
    (prefix / "opt/gpufleet/current").symlink_to(folder.name)
    file = folder / "training/__init__.py"
    file.touch()
    return file
