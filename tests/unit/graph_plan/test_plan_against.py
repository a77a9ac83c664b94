"""`gpufleet plan --against`: a saved plan, or a commit planned by its own program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graph_projects import LOCAL, commit, committed, write

from ops.commands import plan as command
from ops.errors import CommandError
from ops.project import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return committed(tmp_path_factory.mktemp("repository"))


def against(project: Project, what: object, content: str = LOCAL) -> command.Planned:
    write(project.root, content)
    return command.plan(project, "x", str(what))


def saved(project: Project, file: Path) -> Path:
    write(project.root, LOCAL)
    file.write_text(json.dumps(command.plan(project, "x").document))
    return file


def test_a_commit_is_the_same_as_the_work_tree_that_it_was_made_of(project: Project) -> None:
    planned = against(project, "HEAD")

    assert planned.document["difference"]["resources"] == []
    assert "x against HEAD: no resource differs, 4 unchanged" in command.text(planned)


def test_a_changed_stack_file_shows_against_its_commit(project: Project) -> None:
    planned = against(project, "HEAD", LOCAL.replace("count: 2", "count: 3") + "    network: {port: 2300}\n")

    found = {row["name"]: row["action"] for row in planned.document["difference"]["resources"]}
    assert found == {"x-site": "change", "node-1": "replace", "node-2": "replace", "node-3": "add"}
    assert "port: 2222 → 2300 (replaces)" in command.text(planned)


def test_a_commit_is_planned_by_its_own_program(project: Project) -> None:
    resources = project.root / "infra" / "clouds" / "local" / "resources.py"
    program = resources.read_text()
    resources.write_text(program.replace('"nodes": len(plan.nodes)', '"nodes": 40'))
    odd = commit(project.root)
    resources.write_text(program)
    commit(project.root)

    assert "nodes: 40 → 2" in command.text(against(project, odd))


def test_a_saved_plan_serves_as_well(project: Project, tmp_path: Path) -> None:
    planned = against(project, saved(project, tmp_path / "p.json"), LOCAL.replace("count: 2", "count: 1"))

    assert [row["action"] for row in planned.document["difference"]["resources"]] == ["remove", "change"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "is not a plan"),
        ("[]", "is not a plan"),
        ('{"stack": "x", "resources": [{}], "findings": [], "cost": {}}', "is not a plan"),
        (
            '{"stack": "y", "resources": [], "findings": [], "cost": {"hourly": 0, "hourly_max": 0, "items": []}}',
            "of stack y",
        ),
    ],
)
def test_a_file_that_is_no_plan_of_the_stack_is_one_line(
    project: Project, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "p.json").write_text(content)

    with pytest.raises(CommandError, match=message) as failure:
        against(project, tmp_path / "p.json")

    assert failure.value.code == 2
    assert len(str(failure.value).splitlines()) == 1


@pytest.mark.parametrize("ref", ["nothing-like-it", "--output=/tmp/x", "HEAD~99"])
def test_what_is_neither_a_file_nor_a_commit_is_one_line(project: Project, ref: str) -> None:
    with pytest.raises(CommandError, match="neither a file nor a commit"):
        against(project, ref)


def test_of_a_stack_that_the_commit_does_not_have_all_is_new(project: Project) -> None:
    (project.root / "stacks" / "Pulumi.young.yaml").write_text(LOCAL)

    planned = command.plan(project, "young", "HEAD")

    assert {row["action"] for row in planned.document["difference"]["resources"]} == {"add"}
    assert "young against HEAD: 4 added, 0 unchanged" in command.text(planned)


def test_a_commit_that_cannot_be_planned_is_one_line(project: Project) -> None:
    write(project.root, LOCAL.replace("count: 2", "count: none"))
    broken = commit(project.root)

    with pytest.raises(CommandError, match="cannot be planned as of that commit") as failure:
        against(project, broken)
    commit(project.root)

    assert failure.value.code == 2
    assert len(str(failure.value).splitlines()) == 1
