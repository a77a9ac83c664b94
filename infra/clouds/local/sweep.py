"""Everything of a site that exists on this computer, found by its names alone, and its removal. Knows no Pulumi.

No record is trusted: an `up` that was killed in the middle of anything leaves things that no state knows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infra.clouds.local import processes
from infra.clouds.local.errors import LocalError
from infra.clouds.local.processes import Process
from infra.clouds.local.site import kernel_name, locked, publish, tag

NAMESPACES, LINKS = Path("/run/netns"), Path("/sys/class/net")
CGROUPS, NSPAWN = Path("/sys/fs/cgroup"), Path("/run/systemd/nspawn")
UNMOUNT_SECONDS = 3.0


def left_behind(site: Path) -> list[str]:
    """One line for every process, mount, namespace, link, cgroup or folder of the site that exists."""
    return _of_site(site.absolute()).lines()


def remove(site: Path) -> list[str]:
    """Removes all of it, and returns what there was. Raises LocalError when something will not go."""
    site = site.absolute()
    found = left_behind(site)
    if found:
        with locked(site):
            _of_site(site).clear()
        with suppress(OSError):  # other stacks have their sites there
            site.parent.rmdir()
    return found


def remove_node(site: Path, node: str) -> None:
    """Removes one node, whatever state it is in; a node that is not there is no error."""
    with locked(site / "nodes"):
        (site / "nodes" / node / "sshd" / "node.json").unlink(missing_ok=True)
    place = site / "nodes" / node
    _Traces(place=place, nodes=place, pids="sshd/pid", name=kernel_name(site, node)).clear()
    publish(site)


def _of_site(site: Path) -> _Traces:
    return _Traces(place=site, nodes=site / "nodes", pids="*/sshd/pid", name=f"{tag(site)}*")


@dataclass(frozen=True, kw_only=True)
class _Traces:
    """The things of a site or of one of its nodes.

    place: the folder. nodes: the folder that processes name, and `pids` the pattern of the process records below it.
    name: the pattern of names in the kernel.
    """

    place: Path
    nodes: Path
    pids: str
    name: str

    def lines(self) -> list[str]:
        found = [f"process {process.pid}: {process.shown}" for process in self.processes()]
        found += [f"mount {mount}" for mount in self.mounts()]
        found += [f"link {link.name}" for link in LINKS.glob(self.name)]
        found += [f"network namespace {namespace.name}" for namespace in NAMESPACES.glob(self.name)]
        found += [f"cgroup {group}" for group in self.cgroups()]
        found += [f"folder {folder}" for folder in (*self.propagation(), self.place) if folder.exists()]
        return found

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
        found = [Path(_unescaped(line.split()[4])) for line in reversed(lines)]
        return [mount for mount in found if any(mount.is_relative_to(top) for top in (self.place, *self.propagation()))]

    def cgroups(self) -> list[Path]:
        """Version 2 has one tree; beside version 1 there are several."""
        return [*CGROUPS.glob(self.name), *CGROUPS.glob(f"*/{self.name}")]

    def propagation(self) -> list[Path]:
        """Where nspawn keeps the door for later mounts into a machine."""
        return list(NSPAWN.glob(f"*/{self.name}"))


def _unmount(mount: Path) -> None:
    """A mount stays busy for a moment after its last process; nothing of ours may keep it longer."""
    limit = time.monotonic() + UNMOUNT_SECONDS
    while (answer := subprocess.run(["umount", mount], capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > limit:
            raise LocalError(f"cannot unmount {mount}: {answer.stderr.strip()}; end what uses it (`fuser -vm {mount}`)")
        time.sleep(0.05)


def _delete(kind: str, thing: Path) -> None:
    answer = subprocess.run(["ip", kind, "delete", thing.name], capture_output=True, text=True, check=False)
    if answer.returncode and thing.exists():  # a link goes with its other end
        raise LocalError(f"`ip {kind} delete {thing.name}` failed: {answer.stderr.strip()}")


def _rmdir_tree(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(FileNotFoundError):  # the kernel tidies too
            Path(folder).rmdir()


def _unescaped(field: str) -> str:
    """mountinfo writes blanks as octal."""
    return re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), field)
