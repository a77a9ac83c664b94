"""What names say: clouds named outside their folders, worn words, exceptions, and direct uses of the outside world."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.structure.imports import PACKAGES, nodes, package_files, tracked

# Names that say nothing of the thing: a handover, a response and an argument were all called `told`.
WORN = frozenset({"told", "asked", "wanted", "found", "made", "mine", "kept"})

# Words that name a cloud in code. `local`, `machines` and `kubernetes` have other meanings: an import names them.
CLOUD_WORDS = re.compile(r"(?i)aws|alicloud|aliyun|alibaba|\bgcp\b|\bazure\b")
CLOUD_IMPORT = re.compile(r"(infra|ops)\.clouds\.(aws|alicloud|kubernetes|local|machines)(\.|$)")
NAMES_CLOUDS = ("infra/registry.py",)

# Calls of the clock, of chance, of processes and of sockets, and the modules whose subject they are.
OUTSIDE = re.compile(r"time\.(sleep|time|monotonic)$|(random|subprocess|socket)\.\w+$")
OUTSIDE_CHECKED = ("ops/", "infra/clouds/local/", "training/elastic/")
EDGES = (
    "ops/clock.py",
    "ops/engine/processes.py",  # runs every command
    "ops/nodes/ssh.py",  # the transport to the nodes: tries whether their port accepts a connection
    "infra/clouds/local/nodes/processes.py",
    "training/elastic/system.py",  # clock, chance and processes of the launcher
    "training/elastic/rendezvous/",  # the sockets of the store
)


def clouds_named(root: Path) -> Iterator[str]:
    """Files of infra and ops outside the clouds' folders whose code names a cloud; docstrings and comments may."""
    for file in package_files(root, ["infra", "ops"]):
        if re.match(r"(infra|ops)/clouds/\w+/", file) or file in NAMES_CLOUDS:
            continue
        words = sorted({word for word in _code_words(root / file) if _names_cloud(word)})
        if words:
            yield f"{file}: {', '.join(words)[:100]}"


def _names_cloud(word: str) -> bool:
    return bool(CLOUD_WORDS.search(word) or CLOUD_IMPORT.match(word))


def _code_words(path: Path) -> Iterator[str]:
    """The identifiers, imports and strings of a file, but for docstrings."""
    docstrings = {id(node) for holder in nodes(path) for node in _docstring(holder)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from (name for name, _ in names_of(node))


def _docstring(node: ast.AST) -> list[ast.expr]:
    """The string that documents a module, a class or a function."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        first = node.body[0]
        return [first.value] if isinstance(first, ast.Expr) else []
    return []


def names_of(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a node gives or uses, with their lines: variables, attributes, functions, classes, parameters."""
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Name):
        yield node.id, line
    elif isinstance(node, ast.Attribute):
        yield node.attr, node.end_lineno or line
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, line
    elif isinstance(node, ast.arg | ast.keyword) and node.arg:
        yield node.arg, line
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.rpartition(".")[2], line


def worn_words(root: Path) -> Iterator[str]:
    """Lines with a worn word as the name of a thing, as `file:line: word`."""
    folders = [f"{folder}/*.py" for folder in (*PACKAGES, "tools", "playbooks")]
    for file in tracked(root, *folders):
        lines = {
            (line, name.strip("_"))
            for node in nodes(root / file)
            for name, line in names_of(node)
            if name.strip("_") in WORN
        }
        yield from (f"{file}:{line}: {name}" for line, name in sorted(lines))


def misnamed_exceptions(root: Path) -> Iterator[str]:
    """Exception classes whose names do not end in Error, as `file:line: Class`."""
    folders = [f"{folder}/*.py" for folder in (*PACKAGES, "tools", "playbooks")]
    bases: dict[str, set[str]] = {}
    places: dict[str, str] = {}
    for file in tracked(root, *folders):
        for node in nodes(root / file):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                places[node.name] = f"{file}:{node.lineno}: {node.name}"
    roots = {name for names in bases.values() for name in names if name not in bases and _is_exception(name)}
    exceptions = roots | {"Exception", "BaseException"}
    while more := {name for name, names in bases.items() if names & exceptions} - exceptions:
        exceptions |= more
    yield from sorted(places[name] for name in exceptions & set(bases) if not name.endswith(("Error", "Warning")))


def _is_exception(name: str) -> bool:
    return name.endswith(("Error", "Exception"))


def outside_uses(root: Path) -> Iterator[str]:
    """Calls of the clock, of chance, of processes and of sockets outside the modules whose subject they are."""
    for file in package_files(root, ["infra", "ops", "training"]):
        if not file.startswith(OUTSIDE_CHECKED) or file.startswith(EDGES):
            continue
        modules, members = _imported_names(root / file)
        for node in nodes(root / file):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                head = called.partition(".")[0]
                full = members.get(called) or (called if head in modules else "")
                if OUTSIDE.fullmatch(full):
                    yield f"{file}:{node.lineno}: {full}"


def _imported_names(path: Path) -> tuple[set[str], dict[str, str]]:
    """The names of imported modules, and of each name imported from one, its full name."""
    modules, members = set[str](), dict[str, str]()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if not alias.asname}
        elif isinstance(node, ast.ImportFrom):
            members |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return modules, members
