"""The workflow of the page on testing: its rights, and its own shell lines on a request that means harm."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from graph_projects import LOCAL, REPOSITORY, commit, committed, git, write
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from ops.__main__ import app

WORKFLOW: dict[str, Any] = yaml.safe_load((REPOSITORY / "docs" / "examples" / "plan.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]
LIMIT = 65_536  # characters of a comment
HOSTILE = {
    "fence": "```\n<img src=x>\n# heading\n```",
    "long fence": "`" * 400 + "\n[x](https://evil.example)\n" + "`" * 400,
    "tildes": "~~~\n</details><!-- gpufleet plan -->\n@everyone",
    "lines": "a\r```\r# heading\u2028# heading\x0b\x0c\x85# heading",
    "commands": "::add-mask::x\n##[add-mask]x\n::stop-commands::y\n::set-output name=x::y",
    "terminal": "\x1b[2J\x1b]8;;https://evil.example\x07x\u202e\x9b2K",
    "long": "`" * 50_000,
    "many lines": "# heading\n" * 500_000,
}


def steps(job: str) -> list[dict[str, Any]]:
    return JOBS[job]["steps"]


def has_token(job: str) -> bool:
    return "github.token" in str(JOBS[job]) or "secrets." in str(JOBS[job])


def runs_code(job: str) -> bool:
    """Whether a step runs what is in the work tree: of whomever it is."""
    return any(re.search(r"\.venv|pip |gpufleet plan|make ", step.get("run", "")) for step in steps(job))


def ran(job: str, step: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A step's own lines in a folder, as the runner runs them; `bin` of the folder comes first on the PATH."""
    (script,) = [each["run"] for each in steps(job) if each.get("name") == step]
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), **WORKFLOW["env"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def program(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(0o755)


def blocks(markdown: str) -> list[str]:
    """The contents of the fenced blocks, of which a text must wholly consist, without a control character."""
    assert all(each.isprintable() for each in markdown.split("\n"))
    tokens = MarkdownIt("commonmark").parse(markdown)
    assert {token.type for token in tokens} == {"fence"}
    return [token.content for token in tokens]


def test_no_job_has_a_right_that_it_does_not_need() -> None:
    assert WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "plan": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }


def test_no_job_that_runs_code_has_a_token_and_no_checkout_keeps_one() -> None:
    checkouts = [step for job in JOBS for step in steps(job) if "checkout" in step.get("uses", "")]

    assert [name for name in JOBS if runs_code(name)] == ["plan"]
    assert [name for name in JOBS if has_token(name)] == ["comment"]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert not any("checkout" in step.get("uses", "") for step in steps("comment"))


def test_the_program_is_that_of_the_branch_before_anything_is_run() -> None:
    first, second, *_ = steps("plan")

    assert first["uses"].startswith("actions/checkout@")
    assert second["run"].split()[-1] == "HEAD^1"


def test_no_word_of_the_request_is_pasted_into_a_script() -> None:
    scripts = [step["run"] for job in JOBS for step in steps(job) if "run" in step]

    assert not any("${{" in script for script in scripts)


def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it() -> None:
    lines = (REPOSITORY / "docs" / "examples" / "plan.yml").read_text().splitlines()
    used = [line.partition("uses: ")[2] for line in lines if "uses: " in line]

    assert len(used) == 4
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in used)


def test_it_asks_for_options_that_the_command_has() -> None:
    lines = [line for step in steps("plan") for line in step.get("run", "").splitlines()]
    (line,) = [line for line in lines if "bin/gpufleet plan" in line]
    options = {word for word in shlex.split(line) if word.startswith("--")}
    usage = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "200"}).output

    assert options == {"--against"}
    assert all(option in usage for option in options)


def small(folder: Path) -> Path:
    """A repository with one stack and no program."""
    (folder / "stacks").mkdir(parents=True)
    write(folder, LOCAL)
    git(folder, "init", "-q")
    commit(folder)
    return folder


def merged(folder: Path, request: dict[str, str]) -> str:
    """The work tree of the merge of a request that writes these files, and the commit's name."""
    git(folder, "branch", "-M", "main")
    git(folder, "checkout", "-q", "-b", "request")
    for name, content in request.items():
        program(folder / name, content)
    git(folder, "add", "--force", *request)
    commit(folder)
    git(folder, "checkout", "-q", "--detach", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge", "request")
    return git(folder, "rev-parse", "HEAD")


def test_a_request_is_planned_by_the_program_of_its_branch(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    evil = f"open({str(mark)!r}, 'w').close()\n"
    request = {
        "stacks/Pulumi.x.yaml": LOCAL.replace("count: 2", "count: 3"),
        **dict.fromkeys(("infra/__main__.py", "ops/__main__.py", "sitecustomize.py", "json.py", "re.py"), evil),
        ".venv/bin/gpufleet": f"#!/bin/sh\ntouch {mark}\n",
        "bin/git": f"#!/bin/sh\ntouch {mark}\n",
    }
    tree, summary = committed(tmp_path / "tree").root, tmp_path / "summary.md"
    merge = merged(tree, request)

    assert ran("plan", "go back to what the request would change", tree, PATH="/usr/bin:/bin").returncode == 0
    program(tree / ".venv" / "bin" / "gpufleet", f'#!/bin/sh\nPYTHONPATH={tree} exec {sys.executable} -m ops "$@"\n')
    ended = ran("plan", "plan", tree, STACK="x", GITHUB_SHA=merge, GITHUB_STEP_SUMMARY=str(summary))

    assert ended.returncode == 0, ended.stderr
    assert not mark.exists()
    (block,) = blocks(summary.read_text())
    assert "x against HEAD: 1 added" in block
    assert "! not planned: 7 files beside stacks/" in block
    assert (tree / "review" / "plan.txt").read_text().rstrip() == block.rstrip()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_plan_stays_a_block_of_the_summary(tmp_path: Path, text: str) -> None:
    merge = merged(small(tmp_path), {"stacks/Pulumi.x.yaml": LOCAL + "# \n"})
    git(tmp_path, "checkout", "-q", "--detach", "HEAD^1")
    (tmp_path / "said").write_text(text)
    program(tmp_path / ".venv" / "bin" / "gpufleet", "#!/bin/sh\ncat said\nexit 1\n")

    summary = tmp_path / "summary.md"
    ended = ran("plan", "plan", tmp_path, STACK="x", GITHUB_SHA=merge, GITHUB_STEP_SUMMARY=str(summary))

    assert ended.returncode == 1
    assert (ended.stdout, ended.stderr) == ("", "")  # the runner takes lines of the log for commands
    assert len(blocks(summary.read_text())) == 1
    assert (tmp_path / "review" / "plan.txt").stat().st_size <= 20_000


def test_a_request_without_the_stack_file_says_so(tmp_path: Path) -> None:
    merged(small(tmp_path), {"stacks/Pulumi.y.yaml": LOCAL})
    git(tmp_path, "rm", "-q", "stacks/Pulumi.x.yaml")
    merge = commit(tmp_path)
    git(tmp_path, "checkout", "-q", "--detach", "HEAD^1")
    program(tmp_path / ".venv" / "bin" / "gpufleet", "#!/bin/sh\nexit 3\n")

    summary = tmp_path / "summary.md"
    ended = ran("plan", "plan", tmp_path, STACK="x", GITHUB_SHA=merge, GITHUB_STEP_SUMMARY=str(summary))

    assert ended.returncode == 0
    assert "the request has no stack file of x" in summary.read_text()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_artifact_stays_a_block_of_the_comment(tmp_path: Path, text: str) -> None:
    for stack in ("a", "b"):
        (tmp_path / "plans" / f"plan-{stack}").mkdir(parents=True)
        (tmp_path / "plans" / f"plan-{stack}" / "plan.txt").write_text(text)
    (tmp_path / "plans" / "plan-c").mkdir()
    (tmp_path / "plans" / "plan-c" / "plan.txt").symlink_to("/etc/passwd")
    (tmp_path / "re.py").write_text("raise SystemExit('ran')")
    program(tmp_path / "bin" / "gh", '#!/bin/sh\necho "$@" >arguments\n')

    ended = ran("comment", "comment", tmp_path, NUMBER="7", GITHUB_REPOSITORY="o/r", GH_TOKEN="t")

    body = (tmp_path / "body.md").read_text()
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "arguments").read_text().strip() == "pr comment 7 --repo o/r --body-file body.md"
    assert 1 <= len(blocks(body)) <= 2
    assert "root:" not in body
    assert len(body) < LIMIT


def test_a_stack_file_that_is_a_link_is_only_text(tmp_path: Path) -> None:
    merged(small(tmp_path), {"stacks/Pulumi.y.yaml": LOCAL})
    (tmp_path / "stacks" / "Pulumi.x.yaml").unlink()
    (tmp_path / "stacks" / "Pulumi.x.yaml").symlink_to("/etc/passwd")
    merge = commit(tmp_path)
    git(tmp_path, "checkout", "-q", "--detach", "HEAD^1")
    program(tmp_path / ".venv" / "bin" / "gpufleet", '#!/bin/sh\ncat "stacks/Pulumi.$2.yaml"\n')

    ran("plan", "plan", tmp_path, STACK="x", GITHUB_SHA=merge, GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))

    assert (tmp_path / "stacks" / "Pulumi.x.yaml").read_text() == "/etc/passwd"
