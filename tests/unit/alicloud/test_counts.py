"""What is counted of every kind of cluster, as one table: `pytest -s` shows it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import indent

import malformed  # pyright: ignore[reportMissingImports]: conftest.py finds it
import policy_kubernetes_cases  # pyright: ignore[reportMissingImports]: conftest.py finds it
import pytest
import test_alicloud_policy
from ali_clusters import REPOSITORY, cluster
from kubernetes_cluster.planted import PLANTED  # pyright: ignore[reportMissingImports]: conftest.py finds it
from test_alicloud_policy import refused
from test_alicloud_stacks import CASES as OF_ALIBABA

from infra.policy import check
from infra.spec import SpecError, load

LINE = re.compile(r"stacks/Pulumi\.x\.yaml:\d+ [^:]*: .+")
KINDS = {"Alibaba Cloud": test_alicloud_policy, "Kubernetes": policy_kubernetes_cases}


def whole(name: str) -> list[str]:
    """The stack files of a file of mistakes."""
    text = (REPOSITORY / "tests" / "unit" / "infra" / f"mistakes_{name}.txt").read_text()
    return [section.partition("\n")[2] for section in text.split("\n=== ")[1:]]


def inside(asked: str) -> str:
    """The stack file of a cluster."""
    return "config:\n  gpufleet:cluster:\n" + indent(asked, "    ") + "\n"


def told(root: Path, text: str) -> bool:
    """Whether a stack file is refused in lines that each name file, line and key."""
    (root / "stacks" / "Pulumi.x.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load(root, "x")
    return all(LINE.fullmatch(line) for line in str(caught.value).splitlines())


def test_malformed_files_of_four_kinds_of_cluster_are_told_line_by_line(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    files = {
        "AWS": [inside(malformed.stack_file(text)) for text in malformed.CASES.values()],
        "Alibaba Cloud": [inside(cluster(**{key: value})) for key, value, _ in OF_ALIBABA],
        "Kubernetes": whole("kubernetes"),
        "own machines": whole("machines"),
    }

    rows = {name: (len(set(texts)), sum(told(tmp_path, text) for text in set(texts))) for name, texts in files.items()}

    print("\nmalformed stack files          known  told by file, line and key")
    print(*(f"  {name:<28} {known:>5} {right:>6}" for name, (known, right) in rows.items()), sep="\n")
    assert all(known == right >= 30 for known, right in rows.values())
    assert sum(known for known, _ in rows.values()) >= 60


def test_insecure_variants_are_refused_and_secure_ones_are_not() -> None:
    print("\nvariants                    insecure  refused   secure  refused")
    secure = 0
    for name, kind in KINDS.items():
        caught = sum(rule in refused(resources) for rule, resources in kind.INSECURE.values())
        wronged = sum(bool(check(resources)) for resources in kind.SECURE.values())
        secure += len(kind.SECURE)
        print(f"  {name:<24} {len(kind.INSECURE):>9} {caught:>8} {len(kind.SECURE):>8} {wronged:>8}")
        assert caught == len(kind.INSECURE) >= 30
        assert wronged == 0
    assert secure >= 40


def test_at_least_twenty_mistakes_are_planted_for_the_api_server() -> None:
    """Each is refused by the server itself in tests/engine/test_kubernetes_engine.py."""
    print(f"\nobjects with a planted mistake: {len(PLANTED)}, of {len({kind for kind, *_ in PLANTED.values()})} kinds")
    assert len(PLANTED) >= 20
