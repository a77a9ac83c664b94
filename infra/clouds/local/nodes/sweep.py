"""Finds everything of a site on this computer by names alone, and removes it. Independent of Pulumi.

No record is trusted: a killed `up` leaves processes, mounts and links that are in no state.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.local.nodes import processes
from infra.clouds.local.nodes.errors import LocalError
from infra.clouds.local.nodes.processes import Process
from infra.clouds.local.nodes.site import kernel_name, locked, publish, tag

NAMESPACES, LINKS = Path("/run/netns"), Path("/sys/class/net")
CGROUPS, NSPAWN = Path("/sys/fs/cgroup"), Path("/run/systemd/nspawn")
UNMOUNT_SECONDS = 3.0


def left_behind(site: Path) -> list[str]:
    """One line for every process, mount, namespace, link, cgroup or folder of the site that exists."""
    return _of_site(site.absolute()).lines()


def remove(site: Path) -> list[str]:
    """Removes all of it, and returns what there was. Raises LocalError when something cannot be removed."""
    site = site.absolute()
    removed = left_behind(site)
    if removed:
        with locked(site):
            _of_site(site).clear()
        with suppress(OSError):  # other stacks have their sites there
            site.parent.rmdir()
    return removed


def remove_node(site: Path, node: str) -> None:
    """Removes one node in any state; one that does not exist is no error."""
    with locked(site / "nodes"):
        (site / "nodes" / node / "sshd" / "node.json").unlink(missing_ok=True)
    place = site / "nodes" / node
    _Traces(place=place, nodes=place, pids="sshd/pid", name=kernel_name(site, node)).clear()
    publish(site)


def _of_site(site: Path) -> _Traces:
    return _Traces(place=site, nodes=site / "nodes", pids="*/sshd/pid", name=f"{tag(site)}*")


@dataclass(frozen=True, kw_only=True)
class _Traces:
    """The traces of a site or of one of its nodes.

    place: the folder. nodes: the folder that processes name, and `pids` the pattern of the process records below it.
    name: the pattern of names in the kernel.
    """

    place: Path
    nodes: Path
    pids: str
    name: str

    def lines(self) -> list[str]:
        lines = [f"process {process.pid}: {process.shown}" for process in self.processes()]
        lines += [f"mount {mount}" for mount in self.mounts()]
        lines += [f"link {link.name}" for link in LINKS.glob(self.name)]
        lines += [f"network namespace {namespace.name}" for namespace in NAMESPACES.glob(self.name)]
        lines += [f"cgroup {group}" for group in self.cgroups()]
        lines += [f"folder {folder}" for folder in (*self.propagation(), self.place) if folder.exists()]
        return lines

    def clear(self) -> None:
        processes.end(self.processes)
        for mount in self.mounts():
            _unmount(mount)
        for link in LINKS.glob(self.name):
            _delete("link", link)
        for namespace in NAMESPACES.glob(self.name):
            _delete("netns", namespace)
        for group in self.cgroups():
            _rmdir_tree(group)
        for folder in self.propagation():
            folder.rmdir()
        if self.place.exists():
            shutil.rmtree(self.place)

    def processes(self) -> list[Process]:
        leaders = [pid for file in self.nodes.glob(self.pids) if (pid := processes.recorded(file))]
        return processes.belonging(self.nodes, leaders, NAMESPACES.glob(self.name))

    def mounts(self) -> list[Path]:
        """The newest first, which is the order to unmount in."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        mounts = [Path(_unescaped(line.split()[4])) for line in reversed(lines)]
        return [
            mount for mount in mounts if any(mount.is_relative_to(top) for top in (self.place, *self.propagation()))
        ]

    def cgroups(self) -> list[Path]:
        """Version 2 has one tree; beside version 1 there are several."""
        return [*CGROUPS.glob(self.name), *CGROUPS.glob(f"*/{self.name}")]

    def propagation(self) -> list[Path]:
        """The folders by which nspawn propagates later mounts into a machine."""
        return list(NSPAWN.glob(f"*/{self.name}"))


def _unmount(mount: Path) -> None:
    """Waits for a mount that is still busy right after its last process has ended. Raises LocalError."""
    error = ""

    def unmounted() -> bool:
        nonlocal error
        answer = processes.attempt("umount", mount)
        error = answer.stderr.strip()
        return answer.returncode == 0

    if not processes.until(unmounted, UNMOUNT_SECONDS, pause=0.05):
        raise LocalError(f"cannot unmount {mount}: {error}; end what uses it (`fuser -vm {mount}`)")


def _delete(kind: str, path: Path) -> None:
    answer = processes.attempt("ip", kind, "delete", path.name)
    if answer.returncode and path.exists():  # a link goes with its other end
        raise LocalError(f"`ip {kind} delete {path.name}` failed: {answer.stderr.strip()}")


def _rmdir_tree(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(FileNotFoundError):  # the kernel removes some itself
            Path(folder).rmdir()


def _unescaped(field: str) -> str:
    """mountinfo writes blanks as octal."""
    return re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), field)
