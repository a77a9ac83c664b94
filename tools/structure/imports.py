"""The import graph of the repository's packages, read from the source text; nothing is imported to read it.

An edge goes to the file that an import names: `from infra.spec import load` to infra/spec/load.py where that is a file,
else to infra/spec/__init__.py. That Python also runs the `__init__` of each folder above is not counted. Imports below
`if TYPE_CHECKING:` are left out everywhere, because they do not run.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

PACKAGES = ("infra", "ops", "training")

Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Import:
    """One imported module or name. module_level: it runs when the file is loaded, not when a function is called."""

    name: str
    line: int
    module_level: bool


def tracked(root: Path, *patterns: str) -> list[str]:
    """The files of the repository that Git tracks, or would track, as paths below `root`, sorted."""
    return [path for path in _all_tracked(root) if not patterns or any(fnmatch(path, pattern) for pattern in patterns)]


@cache
def _all_tracked(root: Path) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    lines = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(path for path in set(lines) if (root / path).is_file())


def package_files(root: Path, packages: Iterable[str] = PACKAGES) -> list[str]:
    """The Python files of the packages."""
    return tracked(root, *(f"{package}/*.py" for package in packages))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree."""
    return tuple(ast.walk(parsed(path)))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file, `from a import b` as `a.b`; the packages use absolute imports alone."""
    return tuple(_imports(parsed(path).body, module_level=True))


def _imports(nodes: Iterable[ast.AST], *, module_level: bool) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, module_level) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (Import(f"{node.module}.{alias.name}", node.lineno, module_level) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, module_level=module_level)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(ast.iter_child_nodes(node), module_level=module_level and not inside)


def file_graph(root: Path, files: Iterable[str], *, module_level: bool = True) -> Graph:
    """Which of the files imports which. module_level: only imports that run when the file is loaded."""
    known = set(files)
    graph: Graph = {file: set() for file in known}
    for file in known:
        for imported in imports(root / file):
            if imported.module_level or not module_level:
                target = file_of(imported.name, known)
                if target and target != file:
                    graph[file].add(target)
    return graph


def file_of(name: str, known: set[str]) -> str:
    """The file that a dotted name is or is in; empty for what is outside the repository."""
    parts = name.split(".")
    for length in (len(parts), len(parts) - 1):
        base = "/".join(parts[:length])
        for candidate in (f"{base}.py", f"{base}/__init__.py"):
            if candidate in known:
                return candidate
    return ""


def folder(file: str) -> str:
    """What a file belongs to in the graph of folders: its folder; a file directly in a package stands for itself."""
    parts = file.split("/")
    return file if len(parts) == 2 else "/".join(parts[:-1])


def grouped(graph: Mapping[str, set[str]], group: Mapping[str, str]) -> Graph:
    """The same graph between groups of its nodes."""
    merged: Graph = {}
    for node, targets in graph.items():
        merged.setdefault(group[node], set()).update({group[target] for target in targets} - {group[node]})
    return merged


def folder_graph(graph: Mapping[str, set[str]]) -> Graph:
    """The imports between folders."""
    return grouped(graph, {file: folder(file) for file in graph})


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one node, each sorted: who imports each other in a circle."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:  # Tarjan's algorithm
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            place = stack.index(node)
            components.append(sorted(stack[place:]))
            del stack[place:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return [component for component in components if len(component) > 1]
