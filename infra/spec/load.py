"""Pulumi.yaml and stacks/Pulumi.<stack>.yaml, read and checked."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from infra import catalog, registry
from infra.printable import one_line
from infra.spec.cluster import Cluster
from infra.spec.errors import Problem, SpecError, explained, key_path, quoted, shown
from infra.spec.fields import STACK
from infra.spec.yaml_source import MOST_BYTES, Document, UnreadableError, read
from infra.suggest import hint, unknown_keys

CLUSTER = "cluster"  # the one key of our own in a stack file

# What the Pulumi command line itself writes at the top of a stack file.
ENGINE_KEYS = ("secretsprovider", "encryptedkey", "encryptionsalt", "environment")


@dataclass(frozen=True)
class StackFile:
    """A valid stack file: its spec, and the line of each key. path: relative to the project's root."""

    stack: str
    path: Path
    spec: Any  # the type of its cloud
    lines: Mapping[str, int]

    @property
    def cloud(self) -> str:
        """A name in `infra.registry.CLOUDS`."""
        name: str = self.spec.cloud
        return name

    def locate(self, key: str) -> int:
        """The line, from 1, of a key path such as `cluster.nodes[1].count`; if not written, of the key around it."""
        return _locate(self.lines, key)


def stacks(root: Path) -> list[str]:
    """The names of the project's stack files, sorted. Raises SpecError where Pulumi.yaml cannot be read."""
    return _named(root, _project(root).folder)


def load(root: Path, stack: str) -> StackFile:
    """The checked stack file. Raises SpecError with every mistake of the file; no cloud is called."""
    project = _project(root)
    path = project.folder / f"Pulumi.{stack}.yaml"
    if not re.fullmatch(STACK, stack, re.ASCII):
        message = f"{quoted(stack)} is no name for a stack: letters, digits and inner . _ -; rename the file"
        raise SpecError([Problem(one_line(path.as_posix()), 0, "", message)])
    if stack not in (known := _named(root, project.folder)):
        message = f"there is no stack {stack!r}{hint(stack, known)} (stacks: {', '.join(known) or 'none'})"
        raise SpecError([Problem(path.as_posix(), 0, "", message)])
    written = _read(root, path)
    document = written.renamed(f"config.{project.name}:{CLUSTER}", CLUSTER).renamed(f"config.{CLUSTER}", CLUSTER)
    spec, wrong = _checked(written.data, project)
    mistakes = [
        *((line, key, "stands here a second time") for key, line in document.repeated),
        *((written.lines.get(key, 1), key, message) for key, message in _top(written.data, project)),
        *((_locate(document.lines, key), key, message) for key, message in wrong),
    ]
    problems = [Problem(path.as_posix(), *mistake) for mistake in mistakes]
    if spec is None or problems:
        raise SpecError(problems)
    return StackFile(stack, path, spec, document.lines)


@dataclass(frozen=True)
class _Project:
    """What Pulumi.yaml says: the project's name, the folder of its stack files, and its own keys that it declares."""

    name: str
    folder: Path
    declared: tuple[str, ...]

    def own(self, key: str) -> str | None:
        """The short form of one of the project's own keys (`gpufleet:cluster` or `cluster`), None for any other."""
        namespace, _, name = key.rpartition(":")
        return name if namespace in ("", self.name) else None


def _project(root: Path) -> _Project:
    path = Path("Pulumi.yaml")
    if not (root / path).is_file():
        raise SpecError([Problem(path.as_posix(), 0, "", f"not found in {root}, which is therefore no project's root")])
    match _read(root, path).data:
        case {"name": str(name), "config": dict(config), **rest}:
            project = _Project(name, Path(str(rest.get("stackConfigDir", "."))), ())
            if not (root / project.folder).resolve().is_relative_to(root.resolve()):
                message = f"{quoted(str(project.folder))} leads out of the project"
                raise SpecError([Problem(path.as_posix(), 1, "stackConfigDir", message)])
            return replace(project, declared=tuple(filter(None, map(project.own, config))))
    raise SpecError([Problem(path.as_posix(), 1, "", "needs `name` and `config`")])


def _named(root: Path, folder: Path) -> list[str]:
    names = (path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in (root / folder).glob("Pulumi.*.yaml"))
    return sorted(name for name in names if re.fullmatch(STACK, name, re.ASCII))


def _read(root: Path, path: Path) -> Document:
    try:
        return read(_content(root / path))
    except UnreadableError as error:
        raise SpecError([Problem(path.as_posix(), error.line, "", str(error))]) from None
    except OSError as error:
        raise SpecError([Problem(path.as_posix(), 0, "", f"cannot be read: {error.strerror}")]) from None


def _content(file: Path) -> bytes:
    """The first bytes of a regular file, as many as tell whether it is too large. A link is not followed: the messages
    about a file show parts of it, and whoever may change a stack file must not choose which file that is."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a link; put the file itself here") from None
        raise
    with os.fdopen(opened, "rb") as content:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        return content.read(MOST_BYTES + 1)


def _top(data: Any, project: _Project) -> Iterator[tuple[str, str]]:
    """The mistakes at the top of a stack file."""
    if isinstance(data, dict):
        known = ("config", *ENGINE_KEYS)
        yield from unknown_keys([key for key in data if key not in known], {"config"} - set(data), known)
    else:
        yield "", f"is {shown(data)}; a stack file holds `config:` with `{project.name}:{CLUSTER}:`"


def _checked(data: Any, project: _Project) -> tuple[Cluster | None, list[tuple[str, str]]]:
    """The cluster that a stack file asks for, and what is wrong below its `config`, as (key, message)."""
    if not isinstance(data, dict) or "config" not in data:
        return None, []
    config = data["config"]
    if not isinstance(config, dict):
        return None, [("config", f"must be a mapping (key: value), not {shown(config)}")]
    own = {name: value for key, value in config.items() if (name := project.own(key))}
    undeclared = [name for name in own if name not in project.declared]
    absent = [name for name in project.declared if name not in own]
    wrong = [
        (key if key in absent else f"config.{project.name}:{key}", message)
        for key, message in unknown_keys(undeclared, absent, project.declared)
    ]
    if CLUSTER in config and f"{project.name}:{CLUSTER}" in config:
        wrong.append((CLUSTER, f"stands here twice, as `{CLUSTER}` and as `{project.name}:{CLUSTER}`"))
    if CLUSTER not in own:
        return None, wrong
    spec, more = _cluster(own[CLUSTER])
    return spec, [*wrong, *more]


def _cluster(data: Any) -> tuple[Cluster | None, list[tuple[str, str]]]:
    if not isinstance(data, dict):
        return None, [(CLUSTER, f"must be a mapping (key: value), not {shown(data)}")]
    if set(data) == {"secure"}:
        return None, [(CLUSTER, "is encrypted; a cluster holds no secret, so write it in clear")]
    cloud = data.get("cloud")
    if not (isinstance(cloud, str) and cloud in registry.CLOUDS):
        known = ", ".join(registry.CLOUDS)
        if "cloud" not in data:
            return None, [(f"{CLUSTER}.cloud", f"is missing; one of: {known}")]
        meant = hint(cloud, registry.CLOUDS) if isinstance(cloud, str) else ""
        if cloud in catalog.load().clouds:  # the tables know its types, and nobody declares it yet
            meant = "; `gpufleet select` compares it, and nobody deploys it yet"
        return None, [(f"{CLUSTER}.cloud", f"must be one of: {known}; not {shown(cloud)}{meant}")]
    kind: type[Cluster] = registry.part(registry.cloud(cloud).spec)
    try:
        return kind.model_validate(data), []
    except ValidationError as error:
        return None, [(key_path((CLUSTER, *place)), message) for place, message in explained(error, kind)]


def _locate(lines: Mapping[str, int], key: str) -> int:
    while key not in lines:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return lines[key]
