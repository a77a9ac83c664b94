"""A pull request to a stack repository, as its pipeline plans it: what its files can make `gpufleet plan` do or say."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from graph_projects import LOCAL, REPOSITORY, commit, committed, git, write
from typer.testing import CliRunner

from infra import spec
from infra.clouds.bundle import write_archive
from ops.__main__ import app
from ops.commands import plan as command
from ops.errors import CommandError
from ops.project import Project

SECRET = "ghp_0123456789secret"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB/+HV"
STEERING = "\x1b[2K\r::add-mask::x\n##[add-mask]x\u202e\x9b2K"
LOOKS = {  # as YAML writes the same, in double quotes and in a tag
    "quoted": '"' + STEERING.encode("unicode_escape").decode() + '"',
    "tag": "%1b%5b2K%0a::add-mask::x",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "infra").symlink_to(REPOSITORY / "infra")
    (tmp_path / "stacks").mkdir()
    return Project(tmp_path)


def refused(project: Project, stack: str = "x") -> str:
    with pytest.raises(CommandError) as failure:
        command.plan(project, stack)
    assert failure.value.code == 2
    return str(failure.value)


def cluster(*lines: str) -> str:
    return "\n".join(["config:", "  gpufleet:cluster:", *(f"    {line}" for line in lines), ""])


@pytest.mark.parametrize("target", ["../../secret", "/proc/self/environ", "../.git/config", "/dev/zero"])
def test_a_link_in_place_of_a_stack_file_shows_nothing_of_what_it_leads_to(
    project: Project, tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    (project.root / ".git").mkdir()
    (project.root / ".git" / "config").write_text(SECRET)
    if target.startswith("../../"):
        outside = tmp_path_factory.mktemp("outside") / "secret"
        outside.write_text(SECRET)
        target = str(outside)
    (project.root / "stacks" / "Pulumi.x.yaml").symlink_to(target)

    message = refused(project)

    assert "is a link" in message
    assert SECRET not in message


def test_a_folder_of_stack_files_outside_the_project_is_refused(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "Pulumi.x.yaml").write_text(SECRET)
    (project.root / "stacks").rmdir()
    (project.root / "stacks").symlink_to(outside)

    message = refused(project)

    assert "leads out of the project" in message
    assert SECRET not in message


def test_a_pipe_in_place_of_a_stack_file_is_not_waited_for(project: Project) -> None:
    os.mkfifo(project.root / "stacks" / "Pulumi.x.yaml")

    assert "is no regular file" in refused(project)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            cluster("a0: &a0 [x, x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20))),
            "its aliases counted",
        ),
        (
            cluster(
                "cloud: machines",
                "access: {user: ops, key_file: ~/.ssh/k, control: 10.0.0.1}",
                f"host: &host {{name: a, address: 10.0.0.11, host_key: {KEY}}}",
                f"group: &group {{name: a, hosts: [{', '.join(['*host'] * 200)}]}}",
                f"nodes: [{', '.join(['*group'] * 200)}]",
            ),
            "its aliases counted",
        ),
        (cluster("# " + "x" * (1 << 20)), "is larger than 1 MiB"),
        (cluster(f"nodes: [{{name: a, count: 0x{'f' * 5000}}}]", "cloud: local"), "does not fit its tag"),
        (cluster(f"? {'k' * 1000}", ": 1"), "a key of 1,000 characters"),
    ],
    ids=["laughs", "hosts times groups", "large", "number", "key"],
)
def test_a_file_that_would_take_time_or_memory_is_one_short_line(project: Project, content: str, words: str) -> None:
    write(project.root, content)

    message = refused(project)

    assert words in message
    assert len(message.splitlines()) == 1
    assert len(message) < 250


def test_ten_thousand_mistakes_are_not_ten_thousand_lines(project: Project) -> None:
    write(project.root, cluster("cloud: local", *(f"k{i}: 1" for i in range(10_000))))

    lines = refused(project).splitlines()

    assert len(lines) == 201
    assert lines[-1].startswith("… and 9,8")


@pytest.mark.parametrize(
    "lines",
    [
        [f"cloud: {LOOKS['quoted']}"],
        [f"{LOOKS['quoted']}: 1", "cloud: local"],
        [f"cloud: !<{LOOKS['tag']}> x"],
        [f"cloud: !{LOOKS['tag']} x"],
        ["cloud: local", "isolation: process", f"nodes: [{{name: {LOOKS['quoted']}, count: 1}}]"],
        ["cloud: local", "isolation: process", f"nodes: [{{name: a, count: {LOOKS['quoted']}}}]"],
        ["cloud: machines", f"access: {{user: {LOOKS['quoted']}, key_file: {LOOKS['quoted']}}}", "nodes: []"],
        ["cloud: machines", f"power: {{wake: [wake, {LOOKS['quoted']}]}}", "nodes: []"],
        ["cloud: kubernetes", f"kubeconfig: {LOOKS['quoted']}", f"context: {LOOKS['quoted']}"],
        ["cloud: aws", f"region: {LOOKS['quoted']}", f"zone: {LOOKS['quoted']}", "network: {cidr: 10.0.0.0/16}"],
    ],
)
def test_no_text_of_a_stack_file_begins_a_line_or_steers_a_terminal(project: Project, lines: list[str]) -> None:
    write(project.root, cluster(*lines))

    message = refused(project).splitlines()

    assert all(line.startswith("stacks/Pulumi.x.yaml") for line in message)
    assert all(line.isprintable() for line in message)


def test_no_name_of_a_project_steers_a_terminal(project: Project) -> None:
    name = LOOKS["quoted"]
    (project.root / "Pulumi.yaml").write_text(f"name: {name}\nstackConfigDir: stacks\nconfig: {{cluster: {{}}}}\n")
    write(project.root, "- a\n")

    message = refused(project)

    assert "holds `config:`" in message
    assert message.isprintable()


def test_a_stack_file_with_a_name_that_is_no_name_is_no_stack(project: Project) -> None:
    (project.root / "stacks" / f"Pulumi.{STEERING}.yaml").write_text(LOCAL)
    (project.root / "stacks" / "Pulumi.good.yaml").write_text(LOCAL)

    assert spec.stacks(project.root) == ["good"]
    assert "(stacks: good)" in refused(project)


def test_a_file_named_as_the_commit_is_not_taken_for_a_saved_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = committed(tmp_path)
    git(project.root, "branch", "-M", "main")
    monkeypatch.chdir(project.root)
    write(project.root, LOCAL.replace("count: 2", "count: 40"))
    forged = json.dumps(command.plan(project, "x").document)
    (project.root / "main").write_text(forged)

    with pytest.raises(CommandError, match="is a commit and a file"):
        command.plan(project, "x", "main")
    assert command.plan(project, "x", "./main").document["difference"]["resources"] == []


def test_a_repository_among_the_files_of_a_project_is_not_the_project_s(tmp_path: Path) -> None:
    project = committed(tmp_path / "whole" / "clusters")
    shutil.rmtree(project.root / ".git")
    git(tmp_path / "whole", "init", "-q")
    commit(tmp_path / "whole")
    theirs = tmp_path / "theirs"
    (theirs / "ops").mkdir(parents=True)
    (theirs / "ops" / "__init__.py").touch()
    (theirs / "ops" / "__main__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (theirs / "stacks").mkdir()
    shutil.copy(REPOSITORY / "Pulumi.yaml", theirs)
    write(theirs, LOCAL)
    git(theirs, "init", "-q")
    commit(theirs)
    git(theirs, "branch", "-M", "theirs")
    git(theirs, "clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    for part in (tmp_path / "bare").iterdir():
        part.rename(project.root / part.name)

    with pytest.raises(CommandError):
        command.plan(project, "x", "theirs")

    assert not (tmp_path / "ran").exists()


def test_an_archive_that_came_with_the_files_is_not_what_nodes_run(tmp_path: Path) -> None:
    for name in ("a.tar", "a.new"):
        (tmp_path / f"theirs-{name}").write_bytes(b"theirs")
        (tmp_path / name).symlink_to(tmp_path / f"theirs-{name}")
    (tmp_path / "b.tar").write_bytes(b"theirs")

    assert [write_archive(b"ours", tmp_path / name).read_bytes() for name in ("a.tar", "b.tar")] == [b"ours", b"ours"]
    assert not (tmp_path / "a.tar").is_symlink()
    assert {file.read_bytes() for file in tmp_path.glob("theirs-*")} == {b"theirs"}


@pytest.mark.parametrize("ref", ["-h", "--output=ran", "--upload-pack=touch ran", "HEAD;touch ran", "$(touch ran)"])
def test_a_commit_named_like_an_option_or_a_command_is_no_commit(
    project: Project, monkeypatch: pytest.MonkeyPatch, ref: str
) -> None:
    write(project.root, LOCAL)
    git(project.root, "init", "-q")
    monkeypatch.chdir(project.root)

    ended = CliRunner().invoke(app, ["plan", "x", f"--against={ref}"])

    assert "neither a file nor a commit" in str(ended.exception)
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("target", ["/etc", "../../.."])
def test_a_commit_whose_links_lead_outside_is_one_line(project: Project, target: str) -> None:
    write(project.root, LOCAL)
    (project.root / "leads").symlink_to(target)
    git(project.root, "init", "-q")
    commit(project.root)

    with pytest.raises(CommandError, match=r"^--against HEAD: the commit cannot be extracted: .*link") as failure:
        command.plan(project, "x", "HEAD")

    assert failure.value.code == 2
