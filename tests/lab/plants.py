"""Links, FIFOs, devices and hard links in folders that logins may write to, and what becomes of root's files."""

from __future__ import annotations

import json

from gpu_machines import GpuMachine

from infra.clouds.local.nodes.site import MACHINE_USER

# What root holds: nothing of it may change by what others plant. Modes, owners and contents. A file whose inode has not
# changed since the last look (its ctime, which nobody sets) has the contents of then.
STATE = """
import contextlib, hashlib, json, os, stat, sys
KNOWN = "/srv/state.json"
known = json.load(open(KNOWN)) if os.path.exists(KNOWN) else {}
def about(path):
    there = os.lstat(path)
    text = os.readlink(path) if stat.S_ISLNK(there.st_mode) else ""
    if stat.S_ISREG(there.st_mode):
        mark = [there.st_dev, there.st_ino, there.st_size, there.st_ctime_ns]
        if known.get(path, [None])[0] != mark:
            known[path] = [mark, hashlib.sha256(open(path, "rb").read()).hexdigest()]
        text = known[path][1]
    return [there.st_mode, there.st_uid, there.st_gid, text]
paths = [os.path.join(at, name) for top in ("/etc", "/usr", "/root", "/opt") for at, folders, files in os.walk(top)
         for name in (".", *folders, *files)]
found = {}
for path in paths:
    if "__pycache__" not in path:
        with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
            found[path] = about(path)
json.dump(known, open(KNOWN, "w"))
print(json.dumps(found))
"""
# In each folder every name that root has ever used there, as one of four things in turn. Root plants, for the login:
# devices, which a login cannot make by itself, come with a disk that it brings.
PLANT = """
import itertools, os, pwd, stat, sys
login, *folders = sys.argv[1:]
uid = pwd.getpwnam(login).pw_uid
NAMES = (".ssh", "authorized_keys", "authorized_keys2", "ready.json", "ready.new", "proven.json", "proven.new",
         "settings-before.json", "settings-before.new", ".gpufleet-speed", "jobs", "runs", "current", "current.part",
         "node.json", "node.json.new", "venv", "venv.txt", "gpufleet", "gpufleet-mounts",
         ".ansible", ".profile", "json.py")
VICTIMS = ("/etc", "/etc/passwd", "/etc/shadow", "/root", "/usr/local/bin/planted", "/etc/ld.so.preload")
def link(path, victim):
    os.symlink(victim, path)
def fifo(path, victim):
    os.mkfifo(path)
def device(path, victim):
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
def hard(path, victim):
    os.link(victim if os.path.isfile(victim) else "/etc/passwd", path)
kinds, victims, count = itertools.cycle((link, link, fifo, link, hard, device)), itertools.cycle(VICTIMS), 0
for folder in folders:
    for name in NAMES:
        path, victim, kind = os.path.join(folder, name), next(victims), next(kinds)
        if os.path.isdir(path) and not os.path.islink(path):
            os.rename(path, path + ".before")
        elif os.path.lexists(path):
            os.unlink(path)
        try:
            kind(path, victim)
        except OSError:  # a file system or a machine that knows no such thing
            link(path, victim)
        if kind is not hard:
            os.lchown(path, uid, uid)
        count += 1
print(count)
"""


def state(node: GpuMachine) -> dict[str, list[object]]:
    """Every path of root's folders, with mode, owner, group and contents."""
    (node.root / "srv/state.py").write_text(STATE)
    return json.loads(node.run("python3 /srv/state.py"))


def changed(before: dict[str, list[object]], after: dict[str, list[object]]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def writable(node: GpuMachine, *logins: str) -> set[str]:
    """The folders of the machine that one of the logins may write to, but the home of the operator, who may be root."""
    skip = "-path /proc -o -path /sys -o -path /dev -o -path /run -o -path /work -o -path /root"
    found = f"find / \\( {skip} \\) -prune -o -type d -writable -print 2>/dev/null; true"
    paths = {path for login in logins for path in node.run(f"runuser -u {login} -- {found}").splitlines()}
    return {path for path in paths if not path.startswith(f"/home/{MACHINE_USER}")}


def plant(node: GpuMachine, login: str, folders: set[str]) -> int:
    """How many things now stand there in the place of what root may look for."""
    (node.root / "srv/plant.py").write_text(PLANT)
    return int(node.run(f"python3 /srv/plant.py {login} {' '.join(sorted(folders))}"))
