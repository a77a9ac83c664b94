"""The structure of the repository: the proofs of `make structure`, and that each of them sees what it forbids."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.structure.__main__ import PROOFS, RUNS, Proof, file_circles, folder_circles, full_folders, unseen_by_ruff
from tools.structure.names import clouds_named, misnamed_exceptions, outside_uses, worn_words
from tools.structure.walls import upward_imports, wall_breaches

REPOSITORY = Path(__file__).resolve().parents[2]


def repository(root: Path, **files: str) -> Path:
    """A Git repository with the files, their names with __ for / and without .py."""
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize("proof", [*PROOFS, *RUNS], ids=lambda proof: proof.claim)
def test_a_proof_has_no_more_findings_than_before(proof: Proof) -> None:
    findings = list(proof.findings(REPOSITORY))

    assert len(findings) <= proof.most, "\n".join(findings)


def test_a_folder_that_ruff_leaves_out_by_default_is_seen_to_be_missing(tmp_path: Path) -> None:
    root = repository(tmp_path, ops__x="", training__dist__y="")

    assert list(unseen_by_ruff(root)) == ["training/dist/y.py"]


def test_a_circle_of_files_is_one_finding(tmp_path: Path) -> None:
    root = repository(tmp_path, ops__a="from ops import b", ops__b="import ops.c", ops__c="from ops.a import x")

    assert list(file_circles(root)) == ["ops/a.py · ops/b.py · ops/c.py"]


@pytest.mark.parametrize(
    "text", ["def f():\n    import ops.b", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ops.b"]
)
def test_an_import_that_does_not_run_at_load_closes_no_circle(tmp_path: Path, text: str) -> None:
    root = repository(tmp_path, ops__a=text, ops__b="import ops.a")

    assert list(file_circles(root)) == []


def test_folders_may_be_a_circle_where_files_are_none(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        ops__nodes__a="import ops.jobs.b",
        ops__jobs__b="",
        ops__jobs__c="import ops.nodes.d",
        ops__nodes__d="",
    )

    assert list(file_circles(root)) == []
    assert list(folder_circles(root)) == ["ops/jobs · ops/nodes"]


def test_an_import_from_a_lower_layer_into_a_higher_one_is_seen(tmp_path: Path) -> None:
    root = repository(tmp_path, infra__plan__a="from infra.graph import b", infra__graph__b="import infra.plan.a")

    assert list(upward_imports(root)) == ["infra/plan -> infra/graph"]


def test_a_file_without_a_layer_is_an_error_that_says_where_to_name_it(tmp_path: Path) -> None:
    root = repository(tmp_path, infra__nowhere="import infra.plan.a", infra__plan__a="")

    with pytest.raises(LookupError, match=r"^infra/nowhere.py has no layer: name it in LAYERS"):
        list(upward_imports(root))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("infra__plan__a", "import pulumi"),
        ("infra__clouds__gcp__plan", "import pulumi"),
        ("infra__clouds__alicloud__resources__a", "import pulumi_aws"),
        ("ops__commands__a", "def f():\n    import boto3"),
        ("ops__clouds__aws__a", "from alibabacloud_credentials.client import Client"),
        ("infra__checks__a", "from infra.clouds.aws.plan import model"),
        ("infra__spec__a", "from infra import policy"),
        ("training__a", "from infra.handover import Handover"),
        ("infra__a", "import ops.errors"),
        ("infra__clouds__aws__a", "import infra.clouds.alicloud.plan"),
    ],
)
def test_an_import_through_a_wall_is_seen(tmp_path: Path, file: str, text: str) -> None:
    root = repository(tmp_path, infra__clouds__aws__plan="", infra__clouds__alicloud__plan="", **{file: text})

    assert len(list(wall_breaches(root))) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("infra__clouds__gcp__resources", "import pulumi"),
        ("ops__clouds__aws__account", "import boto3"),
        ("infra__clouds__aws__plan__eks", "from infra.clouds.kubernetes.plan import model"),
        ("ops__commands__plan", "from infra.evaluate import evaluate"),
    ],
)
def test_an_import_through_a_door_is_none(tmp_path: Path, file: str, text: str) -> None:
    root = repository(tmp_path, infra__clouds__aws__a="", infra__clouds__kubernetes__a="", **{file: text})

    assert list(wall_breaches(root)) == []


def test_a_cloud_is_named_by_strings_names_and_imports_but_not_by_docstrings(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        infra__a='X = "aws"',
        infra__b="AwsPlan = 1",
        infra__c="import ops.clouds.local.cloud",
        infra__d='"""AWS\'s limits."""\n# as AWS has it',
        infra__clouds__aws__e='X = "aws"',
        infra__registry='X = "aws"',
    )

    assert list(clouds_named(root)) == ["infra/a.py: aws", "infra/b.py: AwsPlan", "infra/c.py: ops.clouds.local.cloud"]


def test_calls_of_the_outside_world_are_seen_under_any_import(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        ops__a="import time\ntime.sleep(1)",
        ops__b="from time import monotonic as now\nnow()",
        ops__c="import time\ndef f(clock=time.monotonic): return clock()",
        ops__engine__processes="import subprocess\nsubprocess.run([])",
    )

    assert list(outside_uses(root)) == ["ops/a.py:2: time.sleep", "ops/b.py:2: time.monotonic"]


def test_a_worn_word_is_seen_as_any_name_and_not_in_texts(tmp_path: Path) -> None:
    text = 'told = 1\ndef f(*, found): return self._mine\nclass C: ...\nx = "asked"  # wanted'

    assert list(worn_words(repository(tmp_path, ops__a=text))) == [
        "ops/a.py:1: told",
        "ops/a.py:2: found",
        "ops/a.py:2: mine",
    ]


def test_an_exception_without_error_in_its_name_is_seen_through_its_bases(tmp_path: Path) -> None:
    text = "class A(Exception): ...\nclass BError(A): ...\nclass C(BError): ...\nclass D: ..."

    assert list(misnamed_exceptions(repository(tmp_path, ops__a=text))) == ["ops/a.py:1: A", "ops/a.py:3: C"]


def test_a_folder_of_sixteen_files_is_full(tmp_path: Path) -> None:
    root = repository(tmp_path, **{f"ops__a{number}": "" for number in range(16)}, training__a="")

    assert list(full_folders(root)) == ["ops: 16 files"]
