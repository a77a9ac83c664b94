"""The dynamic providers: the engine calls them to create, read, update and delete a site and its nodes.

The state holds a reference to these classes, not their code: they must stay importable under these names.
A `Site` creates nothing. It is in the state before the first node is created, and its delete removes everything that
exists by then, also what a killed `up` never reported to the engine.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from pulumi import dynamic

from infra.clouds.local.nodes import machine, process, processes, site, sweep, wire
from infra.clouds.local.nodes.errors import LocalError, one_line_errors
from infra.clouds.local.nodes.site import NodeSpec

SITE_REPLACES = ("path", "isolation", "network")
NODE_REPLACES = ("site", "path", "node", "address", "port", "storage", "machine")
NEEDED_BYTES = 16 << 20


class _Provider(dynamic.ResourceProvider):
    serialize_as_secret_always = False  # a class's name is no secret, and a stack without secrets needs no passphrase

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()


class SiteProvider(_Provider):
    """Properties: path, isolation, network (of machines), and the number of nodes."""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        return dynamic.CheckResult(news, [dynamic.CheckFailure("isolation", line) for line in _problems(news)])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        return _difference(_olds, _news, SITE_REPLACES, ())

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(site.tag(Path(props["path"])), props)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        with _one_line(f"cannot remove the site {_props['path']}"):
            sweep.remove(Path(_props["path"]))


class NodeProvider(_Provider):
    """Properties: those of a NodeSpec, the id of its site, and the output host_key."""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        problems = _obstacles(NodeSpec.read(news))
        return dynamic.CheckResult(news, [dynamic.CheckFailure("port", line) for line in problems])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        return _difference(_olds, _news, NODE_REPLACES, ("public_keys",))

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        spec = NodeSpec.read(props)
        with _one_line(f"cannot create {spec.name}"), site.locked(spec.site, shared=True):
            try:
                _kind(spec).create(spec)
            except BaseException:
                sweep.remove_node(spec.site, spec.name)
                raise
            return dynamic.CreateResult(f"{props['site']}/{spec.name}", {**props, "host_key": spec.host_key})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        spec = NodeSpec.read(props)
        with _one_line(f"cannot read {spec.name}"):
            return dynamic.ReadResult(id_, props) if _kind(spec).is_alive(spec) else dynamic.ReadResult("", {})

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.UpdateResult:
        spec = NodeSpec.read(_news)
        with _one_line(f"cannot update {spec.name}"):
            _kind(spec).authorize(spec)
        return dynamic.UpdateResult({**_news, "host_key": _olds["host_key"]})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        spec = NodeSpec.read(_props)
        with _one_line(f"cannot remove {spec.name}"), site.locked(spec.site, shared=True):
            sweep.remove_node(spec.site, spec.name)


def _kind(spec: NodeSpec) -> ModuleType:
    return machine if spec.machine else process


def _problems(props: dict[str, Any]) -> list[str]:
    """Why this computer cannot be a site: reported before anything is created, also by a preview."""
    place = Path(props["path"])
    there = next(parent for parent in place.parents if parent.exists())
    if shutil.disk_usage(there).free < NEEDED_BYTES:
        return [f"the disk of {there} is full: free some space"]
    if props["isolation"] == "process":
        return process.problems()
    return machine.problems(place, int(props["nodes"])) or wire.problems(place, props["network"])


def _obstacles(spec: NodeSpec) -> list[str]:
    ours = site.holder(spec.site, spec.address, spec.port)
    if spec.machine or ours or processes.is_free(spec.address, spec.port):
        return []
    return [
        f"{spec.address}:{spec.port} is in use by another program (`ss -ltnp sport = :{spec.port}` shows it): "
        "end it, or choose another `network.port`"
    ]


def _difference(
    olds: dict[str, Any], news: dict[str, Any], replaces: tuple[str, ...], updates: tuple[str, ...]
) -> dynamic.DiffResult:
    changed = [key for key in (*replaces, *updates) if olds.get(key) != news.get(key)]
    return dynamic.DiffResult(
        changes=bool(changed),
        replaces=[key for key in changed if key in replaces],
        delete_before_replace=True,  # the new one needs the old one's name and address
    )


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Shows a LocalError without its traceback."""
    try:
        with one_line_errors(what):
            yield
    except LocalError:
        sys.tracebacklimit = 0
        raise


def _leave_with(engine: int) -> None:
    """Ends this process when the engine dies: what it created then would be recorded nowhere."""
    select.select([os.pidfd_open(engine)], [], [])
    os._exit(1)
