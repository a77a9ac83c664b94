"""The training package's archive: named by its content, the same bytes on every computer."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import PLAYBOOKS, make_package

from infra.handover import Access, Environment, Handover, Node, Store
from ops.jobs import rendezvous

FILES = PLAYBOOKS / "roles/training_package/files"


def run(*command: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], input=given, capture_output=True, text=True, check=False)


def pack(source: Path) -> tuple[str, str]:
    built = json.loads(run(FILES / "pack.py", source).stdout)
    return built["name"], built["archive"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_package(tmp_path / "training")


def test_equal_content_gives_equal_bytes_whatever_else_lies_about(source: Path) -> None:
    before = pack(source)
    (source / "__pycache__").mkdir()
    (source / "__pycache__/x.pyc").touch()
    (source / ".editor").touch()
    os.utime(source / "__init__.py", (0, 0))
    (source / "__init__.py").chmod(0o600)

    assert pack(source) == before


def test_other_content_gives_another_name(source: Path) -> None:
    name, _ = pack(source)
    (source / "jobs/mnist.toml").rename(source / "jobs/cifar.toml")

    assert pack(source)[0] != name


def test_a_person_can_check_an_unpacked_package_by_hand(source: Path, tmp_path: Path) -> None:
    _, archive = pack(source)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive))) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")

    command = ["sha256sum", "--check", "--strict", "MANIFEST"]
    assert subprocess.run(command, cwd=tmp_path / "unpacked", capture_output=True, check=False).returncode == 0


def test_whatever_a_killed_run_left_the_next_one_puts_the_package_in_place(source: Path, tmp_path: Path) -> None:
    name, archive = pack(source)
    folder = tmp_path / "opt"
    (folder / f"{name}.part").mkdir(parents=True)
    (folder / name).mkdir()
    (folder / "training-old").mkdir()
    (folder / "current.part").symlink_to("nowhere")
    (folder / "current").mkdir()

    assert run(FILES / "check_package.py", folder, name).stdout == "damaged\n"
    assert run(FILES / "install_package.py", folder, name, given=archive).returncode == 0

    assert run(FILES / "check_package.py", folder, name).stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == ["current", name]


def job(prefix: Path, program: str) -> str:
    """The line by which `gpufleet train` starts a Python program on a node with this folder as its own."""
    node = Node(name="n", group="g", address="127.0.0.1", port=22, host_key="ssh-ed25519 A", prefix=str(prefix))
    told = Handover(
        stack="x",
        cloud="local",
        region=None,
        access=Access(user="u", key_file="/k", known_hosts_file="/h"),
        nodes=(node,),
        groups=(),
        storage=(),
        store=Store(host="control", address="127.0.0.1"),
        environment=Environment(python=sys.executable),
    )
    return rendezvous.python(told, node, ["-c", program])


def test_a_job_keeps_its_code_when_another_package_takes_its_place(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a node/opt/gpufleet"
    packed = [pack(source)]
    (source / "late.py").write_text("")
    packed.append(pack(source))
    (source / "late.py").write_text("raise SystemExit('the code of another job')")
    packed.append(pack(source))
    (old, first), (between, second), (new, third) = packed
    run(FILES / "install_package.py", folder, old, given=first)
    run(FILES / "install_package.py", folder, between, given=second)
    line = job(tmp_path / "a node", "import training; print('up', flush=True); input(); import training.late")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(["sh", "-c", line], cwd=folder, **pipes) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "up\n"
        run(FILES / "install_package.py", folder, new, given=third)

        assert (folder / "current").readlink() == Path(new)
        assert run(FILES / "check_package.py", folder, new).stdout == "", "the job's package needs no second install"
        started.communicate("\n")
    assert started.returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted(["current", between, new])

    run(FILES / "install_package.py", folder, new, given=third)
    assert sorted(path.name for path in folder.iterdir()) == ["current", new], "nobody runs from the old one any more"


def test_a_folder_without_the_package_is_refused_in_one_line(tmp_path: Path) -> None:
    refused = run(FILES / "pack.py", tmp_path)

    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "is no Python package" in refused.stderr
