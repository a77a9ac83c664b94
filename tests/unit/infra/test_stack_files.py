"""Stack files that are right: what is read, where it stands, and what reading costs."""

from __future__ import annotations

import subprocess
import sys
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from projects import REPOSITORY, Project
from pydantic import ValidationError

from infra.clouds.local.spec import LocalSpec
from infra.spec import SpecError, load, stacks

CLUSTER = """\
cloud: local
isolation: machine
network:
  port: 2200
nodes:
  - {name: head, count: 1, addresses: [10.213.0.200]}
  - name: trainer
    count: 4
storage: [{name: data, kind: folder, mount: /data}]
budget: {hourly: 1, monthly: 99.5}
"""


def test_a_stack_file_becomes_typed_values(project: Project) -> None:
    spec = project.load(CLUSTER).spec

    assert isinstance(spec, LocalSpec)
    assert spec.network.cidr == IPv4Network("10.213.0.0/24")
    assert spec.network.port == 2200
    assert [(group.name, group.count) for group in spec.nodes] == [("head", 1), ("trainer", 4)]
    assert spec.nodes[0].addresses == (IPv4Address("10.213.0.200"),)
    assert spec.budget is not None
    assert spec.budget.monthly == 99.5
    with pytest.raises(ValidationError, match="frozen"):
        spec.nodes[0].count = 2  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("isolation", "cidr", "port"), [("process", "127.0.0.0/24", 2222), ("machine", "10.213.0.0/24", 22)]
)
def test_the_network_has_a_default_by_isolation(project: Project, isolation: str, cidr: str, port: int) -> None:
    spec = project.load(f"cloud: local\nisolation: {isolation}\nnodes: [{{name: a, count: 1}}]").spec

    assert isinstance(spec, LocalSpec)
    assert (str(spec.network.cidr), spec.network.port) == (cidr, port)


def test_a_key_is_located_at_its_line_and_an_unwritten_one_around_it(project: Project) -> None:
    file = project.load(CLUSTER)

    lines = {
        key: file.locate(key)
        for key in ("cluster.nodes[1].count", "cluster.nodes[0].addresses[0]", "cluster.network.cidr")
    }
    assert lines == {"cluster.nodes[1].count": 10, "cluster.nodes[0].addresses[0]": 8, "cluster.network.cidr": 5}
    assert file.locate("nothing.like.it") == 1


def test_what_the_engine_writes_into_a_stack_file_is_accepted(project: Project) -> None:
    project.write(
        "secretsprovider: passphrase\nencryptedkey: a\nencryptionsalt: v1:b\nenvironment: [c]\n"
        "config:\n  aws:region: eu-west-1\n  pulumi:tags: {a: b}\n  aws:token: {secure: v1:d}\n"
        "  cluster: {cloud: local, isolation: process, nodes: [{name: a, count: 1}]}\n"
    )

    file = load(project.root, "x")

    assert file.spec.nodes[0].name == "a"
    assert file.locate("cluster.nodes") == 9


def test_words_that_yaml_1_1_would_change_stay_words(project: Project) -> None:
    file = project.load("cloud: local\nisolation: process\nnodes: [{name: on, count: 1}, {name: y, count: 1}]")

    assert [group.name for group in file.spec.nodes] == ["on", "y"]


def test_an_aliased_part_is_read_twice(project: Project) -> None:
    file = project.load(
        "cloud: local\nisolation: process\nnodes:\n- {name: a, count: &many 3}\n- {name: b, count: *many}"
    )

    assert isinstance(file.spec, LocalSpec)
    assert [group.count for group in file.spec.nodes] == [3, 3]


def test_every_shipped_stack_loads() -> None:
    assert {"local", "local-machine", "a100-prod"} <= {load(REPOSITORY, stack).stack for stack in stacks(REPOSITORY)}


@pytest.mark.parametrize("stack", ["local", "local-machine"])
def test_a_local_stack_holds_its_salt_so_that_its_first_up_changes_no_file(stack: str) -> None:
    assert "encryptionsalt" in load(REPOSITORY, stack).lines


def test_a_project_file_without_config_is_one_line(project: Project) -> None:
    (project.root / "Pulumi.yaml").write_text("name: gpufleet\n")

    with pytest.raises(SpecError, match=r"^Pulumi.yaml:1: needs `name` and `config`$"):
        load(project.root, "x")


def test_loading_imports_neither_the_engine_nor_torch() -> None:
    code = (
        "import sys; from pathlib import Path; from infra.spec import load; load(Path(sys.argv[1]), 'local');"
        "print([name for name in ('pulumi', 'torch', 'numpy', 'grpc') if name in sys.modules])"
    )

    answer = subprocess.run([sys.executable, "-c", code, REPOSITORY], capture_output=True, text=True, check=True)

    assert answer.stdout == "[]\n"


def test_the_pure_core_never_names_the_engine() -> None:
    engine = (
        "graph",
        "policy_pack",
        "__main__.py",
        "resources",
        "resources.py",
        "bundle.py",
        "dependencies.py",
        "tags.py",
    )
    local = ("provider.py",)  # of infra/clouds/local: a dynamic provider
    for file in Path(REPOSITORY, "infra").rglob("*.py"):
        if not {*file.relative_to(REPOSITORY).parts} & {*engine, *local, ".venv"}:
            assert "import pulumi" not in file.read_text(), file
