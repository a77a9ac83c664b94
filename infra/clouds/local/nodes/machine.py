"""A node that is a machine: systemd-nspawn with systemd as process 1, its own network and its own disk. Needs root.

The disk is an overlay in memory on the shared base tree: created in an instant, deleted with the machine. The Python
environment of this computer is shared with the machine, read-only and at the same path; so are the storage folders.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from infra.clouds.local.nodes import base, processes, site, sweep, tree, wire
from infra.clouds.local.nodes.errors import LocalError
from infra.clouds.local.nodes.process import LIMITS, sshd_options, wait_for_server
from infra.clouds.local.nodes.processes import Started
from infra.clouds.local.nodes.site import MACHINE_UID, MACHINE_USER, NodeSpec

TOOLS = {"systemd-nspawn": "systemd-container", "ip": "iproute2", "ssh": "openssh-client", "setpriv": "util-linux"}
BOOT_SECONDS = 90.0
REBOOT_SECONDS = 15.0
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_A_MACHINE = 7

# Joins the machine's own cgroups, then boots it, and again after a reboot (133). TERM must reach nspawn, too: it shuts
# the machine down.
RUNNER = """
for group in $1; do echo $$ > "$group/cgroup.procs"; done; shift
trap halt=1 TERM
while :; do
  "$@" < /dev/null & booted=$!
  wait $booted; code=$?
  while kill -0 $booted 2> /dev/null; do wait $booted; code=$?; done
  [ $code = 133 ] && [ -z "$halt" ] || exit $code
done
"""

SSHD = """Port {port}
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
UseDNS no
{limits}
"""


def problems(place: Path, nodes: int) -> list[str]:
    """What this computer lacks, one line each with its remedy."""
    if set(str(place)) & set(":,\\"):
        return [f"{place}: machines need a path without colon, comma and backslash: move the project"]
    if os.geteuid() != 0:
        return ["`isolation: machine` needs root: run it as root, or use `isolation: process`"]
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    lines = [f"{tool} is missing: install the package {TOOLS[tool]}" for tool in missing]
    allowed, needed = int(INOTIFY.read_text()), INOTIFY_A_MACHINE * nodes + 16
    if needed > allowed:  # else a late machine hangs in its boot, without a message
        lines.append(
            f"{nodes} machines need {needed} inotify instances, this computer allows {allowed}: "
            f"`sysctl -w fs.inotify.max_user_instances={needed + 64}`"
        )
    return lines + base.problems()


def create(spec: NodeSpec) -> None:
    """Boots the machine and waits until it has finished; an earlier one of its name is removed. Raises LocalError."""
    assert spec.machine
    lower = base.ready(spec.machine["base"])
    for name in {spec.name, site.holder(spec.site, spec.address, spec.port)} - {None}:
        sweep.remove_node(spec.site, name)
    site.prepare(spec)
    site.register(spec)
    root = _disk(spec, lower)
    shared = dict(_shared(Path(spec.machine["environment"])))
    _configure(spec, root)
    _open_parents(root, shared)
    namespace = wire.connect(spec, spec.machine)
    runner = _boot(spec, root, namespace, shared)
    wait_for_server(spec, lambda: runner.poll() is not None, spec.service / "log", BOOT_SECONDS)
    _wait_for_boot(spec)


def authorize(spec: NodeSpec) -> None:
    """Sets the authorized keys, for the next login. The machine may be running: its tree is untrusted."""
    keys = f"home/{MACHINE_USER}/.ssh/authorized_keys"
    tree.write(spec.folder / "disk" / "root", keys, spec.keys, 0o600, MACHINE_UID)


def add_login(root: Path, user: str, uid: int) -> None:
    """Adds a user to the tree as cloud images have one: no password, a folder for keys, and full sudo."""
    for file, line in (
        ("passwd", f"{user}:x:{uid}:{uid}::/home/{user}:/bin/bash\n"),
        ("shadow", f"{user}:*:19700:0:99999:7:::\n"),
        ("group", f"{user}:x:{uid}:\n"),
    ):
        with (root / "etc" / file).open("a") as table:
            table.write(line)
    tree.write(root, f"etc/sudoers.d/{user}", f"{user} ALL=(ALL) NOPASSWD:ALL\n", 0o440)
    for folder in (root / "home" / user, root / "home" / user / ".ssh"):
        folder.mkdir(mode=0o700)
        os.chown(folder, uid, uid)


def is_alive(spec: NodeSpec) -> bool:
    """True if the machine runs and its SSH server answers; one that is rebooting is waited for."""
    pid = processes.recorded(spec.service / "pid")
    if pid is None or not processes.is_running(spec.folder, pid):
        return False
    log = spec.service / "log"
    try:
        wait_for_server(spec, lambda: not processes.is_running(spec.folder, pid), log, REBOOT_SECONDS)
    except LocalError:
        return False
    return processes.answers(spec.address, spec.port)


def _disk(spec: NodeSpec, lower: Path) -> Path:
    """In memory: a package manager syncs at every step, and nothing of a machine outlives it."""
    disk = spec.folder / "disk"
    disk.mkdir()
    processes.run("mount", "-t", "tmpfs", "-o", "mode=0755", site.kernel_name(spec.site, spec.name), disk)
    for part in ("upper", "work", "root"):
        (disk / part).mkdir()
    layers = f"lowerdir={lower},upperdir={disk / 'upper'},workdir={disk / 'work'}"
    processes.run("mount", "-t", "overlay", "-o", layers, site.kernel_name(spec.site, spec.name), disk / "root")
    return disk / "root"


def _configure(spec: NodeSpec, root: Path) -> None:
    """Like a cloud image: a login with a key and sudo, its own host key and machine id, no internet access."""
    assert spec.machine
    tree.write(root, "etc/hostname", f"{spec.name}\n")
    hosts = f"127.0.0.1 localhost\n{spec.address} {spec.name}\n{spec.machine['gateway']} control\n"
    tree.write(root, "etc/hosts", hosts)
    tree.write(root, "etc/machine-id", f"{uuid.uuid4().hex}\n")
    tree.write(root, "etc/resolv.conf", "")
    tree.write(root, "etc/apt/sources.list", "")
    server = SSHD.format(port=spec.port, limits=LIMITS) + sshd_options(root / "usr/sbin/sshd")
    tree.write(root, "etc/ssh/sshd_config.d/gpufleet.conf", server)
    for part, mode in (("host_key", 0o600), ("host_key.pub", 0o644)):
        name = part.replace("host", "ssh_host_ed25519")
        tree.write(root, f"etc/ssh/{name}", (spec.service / part).read_text(), mode)
    add_login(root, MACHINE_USER, MACHINE_UID)
    authorize(spec)


def _shared(environment: Path) -> Iterator[tuple[Path, Path]]:
    """Path in the machine → path here, of the environment and of the interpreter that it was made from.

    An interpreter below /usr is the distribution's own, and the base tree has it already.
    """
    yield environment, environment.resolve()
    settings = (environment / "pyvenv.cfg").read_text().splitlines()
    interpreter = next(Path(line.removeprefix("home = ")).parent for line in settings if line.startswith("home = "))
    if not interpreter.resolve().is_relative_to("/usr"):
        yield interpreter, interpreter.resolve()
        yield interpreter.resolve(), interpreter.resolve()
    yield environment.resolve(), environment.resolve()


def _open_parents(root: Path, shared: dict[Path, Path]) -> None:
    """Makes the folders above a shared one accessible to `ops`: some are closed to other users (/root)."""
    for inside in shared:
        for parent in reversed(inside.parents):
            with tree.folder(root, PurePosixPath(parent).relative_to("/")) as there:
                os.fchmod(there, os.fstat(there).st_mode & 0o7777 | 0o111)


def _boot(spec: NodeSpec, root: Path, namespace: Path, shared: dict[Path, Path]) -> Started:
    name, groups = site.kernel_name(spec.site, spec.name), list(_cgroups(site.kernel_name(spec.site, spec.name)))
    for group in groups:
        group.mkdir()
    command = [
        "systemd-nspawn", "--quiet", "--boot", "--register=no", f"--directory={root}", f"--machine={name}",
        f"--hostname={spec.name}", f"--network-namespace-path={namespace}", "--capability=CAP_NET_ADMIN",
        "--console=pipe", "--resolv-conf=off", "--timezone=off",
        *(f"--bind-ro={here}:{inside}" for inside, here in shared.items()),
        *(f"--bind={spec.site / 'storage' / name}:{mount}" for name, mount in spec.storage.items()),
        *(["--keep-unit"] if groups else []),
    ]  # fmt: skip
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",  # its own network settings
        "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",  # version 2 alone, as on cloud images
    }
    arguments = ["sh", "-c", RUNNER, "sh", " ".join(map(str, groups)), *command]
    runner = processes.start(arguments, environment, spec.service / "log")
    (spec.service / "pid").write_text(str(runner.pid))
    return runner


def _cgroups(name: str) -> Iterator[Path]:
    """A machine's own groups. Where systemd runs this computer it makes them itself."""
    if Path("/run/systemd/system").exists():
        return
    top = sweep.CGROUPS
    if (top / "cgroup.procs").exists():
        yield top / name
    else:
        yield from (top / tree / name for tree in ("systemd", "unified") if (top / tree / "cgroup.procs").exists())


def _wait_for_boot(spec: NodeSpec) -> None:
    """Waits until systemd in the machine has started all units. Raises LocalError for failed ones."""
    question = f"timeout {BOOT_SECONDS} systemctl is-system-running --wait; systemctl --failed --plain --no-legend"
    command = [*DIES_WITH_US, "ssh", "-F", spec.site / "ssh_config", "-oServerAliveInterval=10", spec.name, question]
    answer = processes.attempt(*command)
    state, *failed = answer.stdout.splitlines() or [answer.stderr.strip() or "unreachable"]
    if state != "running":
        raise LocalError(f"{spec.name} has booted, but is {state}: {'; '.join(failed)}")
