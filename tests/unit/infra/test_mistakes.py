"""Wrong stack files: one line a mistake, at its line, with its key and words that help. The cases: mistakes*.txt."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from projects import Project

from infra.spec import SpecError, load, stacks

ED25519 = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)
GOOD_KEY = f"ssh-ed25519 {base64.b64encode(ED25519).decode()} me@here"

CASES = {
    f"{file.stem.removeprefix('mistakes')} {title}".strip(" _"): text
    for file in sorted(Path(__file__).parent.glob("mistakes*.txt"))
    for title, _, text in (section.partition("\n") for section in file.read_text().split("\n=== ")[1:])
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_each_mistake_is_one_line_with_file_line_key_and_remedy(project: Project, text: str) -> None:
    expected = [
        (line, *mark.strip().split(": ", 1))
        for line, content in enumerate(text.splitlines(), start=1)
        for mark in content.split("#!")[1:]
    ]
    project.write(text)

    with pytest.raises(SpecError) as caught:
        load(project.root, "x")

    problems = caught.value.problems
    assert [(problem.line, problem.key) for problem in problems] == [
        (line, key.strip(" :")) for line, key, _ in expected
    ]
    for problem, (line, key, words) in zip(problems, expected, strict=True):
        assert words in problem.message
        assert str(problem).startswith(f"stacks/Pulumi.x.yaml:{line} {key}: ".replace(" : ", ": "))
    assert str(caught.value).splitlines() == [str(problem) for problem in problems]
    assert not re.search(r"pydantic|input_value|Input should|Traceback|NoneType|dict\b", str(caught.value))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY----- c2VjcmV0", "is a private key"),
        ("b3BlbnNzaC1rZXktdjEAAAAAc2VjcmV0", "is a private key"),
        ("ssh-ed25519", "nothing follows ssh-ed25519"),
        ("ssh-ed25518 AAAA", "begins with 'ssh-ed25518'; did you mean 'ssh-ed25519'?"),
        ("c2VjcmV0 of mine", "begins with the key's type, such as ssh-ed25519"),
        ("ssh-ed25519 c2VjcmV0*", "is not base64"),
        ("ssh-ed25519 c2VjcmV0", "cut off"),
        (GOOD_KEY.replace("ssh-ed25519", "ssh-rsa"), "says ssh-rsa, but the key inside is of another type"),
        (f"ssh-ed25519 {base64.b64encode(ED25519[:-5]).decode()}", "cut off"),
        (f"ssh-ed25519 {base64.b64encode(ED25519[:15] + bytes(4)).decode()}", "not a whole ssh-ed25519 key"),
        (f"{GOOD_KEY}\\nssh-rsa c2VjcmV0", "without line breaks"),
    ],
)
def test_a_wrong_public_key_is_explained_and_never_repeated(project: Project, key: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        project.load(
            f'cloud: local\nisolation: process\naccess:\n  public_key: "{key}"\nnodes: [{{name: a, count: 1}}]'
        )

    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (6, "cluster.access.public_key")
    assert words in problem.message
    assert "c2VjcmV0" not in str(caught.value)
    assert "AAAA" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cloud", "'SECRET'"),
        ("isolation", "'SECRET'"),
        ("nodes", "'SECRET'"),
        ("nodes", "[{name: 'SECRET', count: 1}]"),
        ("nodes", "[{name: a, count: 'SECRET', addresses: ['SECRET']}]"),
        ("network", "{cidr: 'SECRET'}"),
        ("storage", "[{name: a, kind: 'SECRET', mount: 'SECRET'}]"),
        ("'SECRET'", "1"),
    ],
)
def test_a_private_key_in_any_wrong_place_is_never_repeated(project: Project, key: str, value: str) -> None:
    sections = {"cloud": "local", "isolation": "process", "nodes": "[{name: a, count: 1}]", key: value}
    cluster = "\n".join(f"{name}: {text}" for name, text in sections.items())

    with pytest.raises(SpecError) as caught:
        project.load(cluster.replace("SECRET", "-----BEGIN OPENSSH PRIVATE KEY----- c2VjcmV0"))

    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", 1, "is empty; a stack file holds `config:` with `gpufleet:cluster:`"),
        (b"# nothing yet\n", 1, "is empty"),
        (b"config:\n  gpufleet:cluster:\n    cloud: l\xf6cal\n", 3, "byte 0xf6 is not UTF-8 text"),
        (b"config:\n  a:b: \x07\n", 2, "character U+0007 cannot stand in a file"),
        (b"config: " + b"[" * 1000, 1, "is nested too deeply"),
        (b"config: !!int many\n", 1, "'many' does not fit its tag"),
        (b"config:\n  ? [a]\n  : b\n", 2, "a key must be a word"),
    ],
)
def test_a_file_that_is_no_yaml_text_is_one_line(project: Project, content: bytes, line: int, words: str) -> None:
    project.write(content)

    with pytest.raises(SpecError) as caught:
        load(project.root, "x")

    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (line, "")
    assert words in problem.message


def test_a_wrong_stack_name_lists_the_stacks_and_the_nearest(project: Project) -> None:
    project.write("", "local")
    project.write("", "prod")

    with pytest.raises(
        SpecError,
        match=r"^stacks/Pulumi.locla.yaml: there is no stack 'locla'; did you mean 'local'\? \(stacks: local, prod\)$",
    ):
        load(project.root, "locla")
    with pytest.raises(SpecError, match=r"'\.\./Pulumi' is no name for a stack"):
        load(project.root, "../Pulumi")
    assert stacks(project.root) == ["local", "prod"]


def test_a_folder_without_a_project_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"^Pulumi.yaml: not found in "):
        load(tmp_path, "local")


def test_a_stack_file_that_is_a_folder_is_one_line(project: Project) -> None:
    (project.root / "stacks" / "Pulumi.x.yaml").mkdir()

    with pytest.raises(SpecError, match=r"^stacks/Pulumi.x.yaml: cannot be read: Is a directory$"):
        load(project.root, "x")
