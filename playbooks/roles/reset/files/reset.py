"""Run on a node as root: takes away what gpu_node.yml has put there, and prints it, one thing a line.

Argument: NAMES, the regular expressions of the packages that go. Files are known by their names, which have `gpufleet`
in them, or by their first line. The module that the kernel holds stays until the next boot.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

PLACES = (
    "/etc/apt",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/pki/rpm-gpg",
    "/etc/profile.d",
    "/etc/security/limits.d",
    "/etc/ssh/sshd_config.d",
    "/etc/sysctl.d",
    "/etc/systemd",
    "/etc/udev/rules.d",
    "/etc/yum.repos.d",
    "/usr/local/sbin",
    "/usr/share/keyrings",
)
FOLDERS = (
    "/etc/gpufleet",
    "/opt/gpufleet",
    "/usr/local/lib/gpufleet",
    "/var/cache/gpufleet",
    "/var/cache/gpufleet-mounts",
    "/var/lib/gpufleet",
)
SIGNATURE = "# Written by gpufleet"
SIGNED = ("/etc/nccl.conf",)
GENERATED = ("/etc/cdi/nvidia.yaml", "/usr/sbin/mount.mount-s3", "/usr/sbin/mount.ossfs2", "/usr/sbin/mount.rclone")
SERVICES = ("nvidia-dcgm-exporter", "nvidia-dcgm", "nvidia-fabricmanager", "nvidia-persistenced")
UNITS = Path("/etc/systemd/system")
CONTAINERD, OUR_LINE = Path("/etc/containerd/config.toml"), "# gpufleet"
DOCKER, OURS = Path("/etc/docker/daemon.json"), {"features": ("cdi",), "runtimes": ("nvidia",)}
APT = (
    ("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Abbrev}\n"),
    ("apt-get", "purge", "--yes", "--quiet", "--allow-change-held-packages", "--option", "DPkg::Lock::Timeout=300"),
)
DNF = (
    ("rpm", "--query", "--all", "--queryformat", "%{NAME} ii\n"),
    ("dnf", "remove", "--assumeyes", "--quiet", "--noautoremove"),
)
LISTING, REMOVAL = APT if shutil.which("apt-get") else DNF
AUTOMATIC, NO_KERNELS = Path("/etc/dnf/automatic.conf"), "# gpufleet: kernel* is ours in the next line"
SSH = "ssh" if Path("/usr/lib/systemd/system/ssh.service").exists() else "sshd"  # Debian's name, and everybody else's
LONG_AGO = "1"  # the day of shadow(5), after 1970-01-01, on which a closed login has ended
KEPT = "/etc/ssh/sshd_config.d/gpufleet.conf"  # how machines on this computer are reached
TENANTS = Path("/etc/gpufleet/tenants.d")
DATA = (
    "/etc/gpufleet/keys",  # without them what is on encrypted disks is lost
    "/etc/gpufleet/tenants.d",  # without them the logins that stay are not known as ours any more
    "/var/lib/gpufleet/jobs",
    "/var/lib/gpufleet/runs",  # the checkpoints of a stack whose nodes share no storage
)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def packages(names):
    rows = [line.split() for line in run(*LISTING).splitlines()]
    installed = [name for name, state in rows if state[1] != "n" and re.fullmatch("|".join(names), name)]
    # a unit that goes on running without its file cannot be loaded when the file is back
    if services := [name for name in SERVICES if Path("/usr/lib/systemd/system", f"{name}.service").exists()]:
        run("systemctl", "--quiet", "disable", "--now", *services)
    if installed:
        run(*REMOVAL, *installed)
    return [f"package {name}" for name in installed]


def units():
    """Stops what is ours. A mount is named by its path, and may be in use."""
    mounts = [unit for unit in UNITS.glob("*.mount") if unit.read_text().startswith(SIGNATURE)]
    units_left = sorted([*mounts, *(unit for unit in UNITS.glob("gpufleet-*.*") if unit.is_file())])
    for unit in units_left:
        stopped = subprocess.run(["systemctl", "--quiet", "disable", "--now", unit.name], check=False)
        if stopped.returncode:
            sys.exit(f"reset: {unit.name} does not stop: look at `systemctl status {unit.name}`, then run it again")
    for unit in mounts:
        unit.unlink()
    return [f"unit {unit.name}" for unit in units_left]


def is_empty(path):
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def files():
    paths = [file for place in PLACES for file in Path(place).rglob("*gpufleet*") if str(file) != KEPT]
    paths += [file for file in map(Path, GENERATED) if file.exists() or file.is_symlink()]
    signed = [file for file in map(Path, SIGNED) if file.exists()]
    paths += [file for file in signed if file.read_text().startswith(SIGNATURE)]
    for file in paths:
        file.unlink()
    folders = [folder for folder in map(Path, FOLDERS) if folder.is_dir()]
    inside = [path for folder in folders for path in folder.iterdir() if str(path) not in DATA or is_empty(path)]
    for path in inside:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for folder in folders:
        if not any(folder.iterdir()):
            folder.rmdir()
    return [str(path) for path in sorted(paths + inside)]


def tenants():
    """Closes the logins that stay: what keeps the keys in their homes from counting goes."""
    rows = [line.split(":") for line in run("getent", "shadow").splitlines()] if TENANTS.is_dir() else []
    closed = [row[0] for row in rows if (TENANTS / row[0]).exists() and row[7] != LONG_AGO]
    for name in closed:
        run("usermod", "--expiredate", LONG_AGO, name)
    return [f"login {name}, which is closed" for name in closed]


def packet_filters():
    """The rules that the kernel holds; the units that load them at every boot went with the others."""
    tables = run("nft", "list", "tables").splitlines() if shutil.which("nft") else []
    ours = [table for table in tables if re.fullmatch("table inet gpufleet(_[a-z]+)?", table)]
    for table in ours:
        run("nft", "delete", *table.split())
    return [f"packet filter {table.split()[-1]}" for table in ours]


def our_lines(file, end):
    """Takes only the lines that are ours, by how they end, from a file of others."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    theirs = [line for line in lines if not line.rstrip().endswith(end)]
    if theirs == lines:
        return []
    file.write_text("".join(theirs))
    return [str(file)]


def docker_settings():
    """Only what is ours: others may have settings there, too."""
    if not DOCKER.exists():
        return []
    before = json.loads(DOCKER.read_text())
    after = {key: value for key, value in before.items() if key not in (*OURS, "live-restore")}
    for key, ours in OURS.items():
        if rest := {name: value for name, value in before.get(key, {}).items() if name not in ours}:
            after[key] = rest
    if after == before:
        return []
    if after:
        DOCKER.write_text(json.dumps(after, indent=4) + "\n")
    else:
        DOCKER.unlink()
    return [str(DOCKER)]


def kernels_let_in(file):
    """Takes kernels from what dnf-automatic leaves alone, if it was us who put them there."""
    before = file.read_text() if file.exists() else ""
    ours = rf"^{re.escape(NO_KERNELS)}\n(?:excludepkgs=kernel\*(?:\n|\Z)|(.*?),kernel\*(?![^,\s]))"
    after = re.sub(ours, r"\1", before, flags=re.MULTILINE)
    if after == before:
        return []
    file.write_text(after)
    return [str(file)]


def main(names):
    gone = [*units(), *packages(names), *tenants(), *files(), *packet_filters(), *docker_settings()]
    gone += [*our_lines(CONTAINERD, OUR_LINE), *kernels_let_in(AUTOMATIC)]
    if gone:
        run("systemctl", "daemon-reload")
        run("systemctl", "try-reload-or-restart", SSH)
    print("\n".join(gone))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
