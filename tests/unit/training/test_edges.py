"""Where training reaches the system directly: everywhere else clocks, processes and sockets are handed in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import training

ROOT = Path(training.__file__).parent
EDGES = {  # modules whose purpose is the system, by their path in training/
    "elastic/system.py": "the clocks, processes and sockets that the others are handed",
    "elastic/rendezvous/": "the rendezvous store's sockets and its key",
    "data/download.py": "runs npm",
    "search/": "runs the workers of a search",
    "metrics/watch.py": "refreshes a terminal",
    "metrics/tensorboard.py": "writes the time of day into events",
    "bench/": "measures processes",
}
MODULES = {"subprocess", "socket", "random", "secrets"}
CALLS = {"time.sleep", "time.time", "datetime.now", "os.kill"}
CLOCKS = {"time.monotonic", "time.perf_counter"}  # elsewhere they measure; in elastic/ they decide
NAMES = {"atomic.py", "checkpoint/manager.py"}  # random names of temporary files and of runs


def direct_uses(tree: ast.AST, forbidden: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name in MODULES)
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                yield module
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if f"{owner}.{name}" in forbidden:
                yield f"{owner}.{name}"
            case _:
                pass


def inner() -> list[str]:
    paths = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))
    return [path for path in paths if not path.startswith(tuple(EDGES))]


@pytest.mark.parametrize("path", inner())
def test_only_the_edges_reach_the_system(path: str) -> None:
    forbidden = CALLS | (CLOCKS if path.startswith("elastic/") else set())
    uses = {*direct_uses(ast.parse((ROOT / path).read_text()), forbidden)}

    assert uses <= ({"secrets"} if path in NAMES else set())


@pytest.mark.parametrize("path", EDGES)
def test_every_edge_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("code", ["import socket", "from subprocess import run", "time.sleep(1)", "datetime.now(UTC)"])
def test_a_direct_use_is_found(code: str) -> None:
    assert len([*direct_uses(ast.parse(code), CALLS)]) == 1
