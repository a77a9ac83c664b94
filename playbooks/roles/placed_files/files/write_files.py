"""Run on a node: puts files and folders in place, each whole, and prints the paths of those that were not so.

Arguments: place | look, which only prints, and BELOW, the node's own root folder. Standard input: a JSON list of
{"path"} with "content" (in base64 where "base64" is true) for a file, and without it for a folder. "mode": 0644 of a
file and 0755 of a folder without it. "owner": the login that a folder is for; all else belongs to who runs it, root on
a machine. One program for all files of a role: a module for each would cost more than all of its work.

Nothing is written below a folder that others may change: a link that they plant there would lead root to other files.
Such a folder ends the program, with its path. Directories that are sticky, as /scratch, may lie above one of ours: what
root owns there stays.
"""

import base64
import json
import os
import pwd
import stat
import sys
from contextlib import suppress
from pathlib import Path

FILE_MODE, FOLDER_MODE = "0644", "0755"
LOGINS = 1000  # from this number on groups are people's; below it they are the system's (login.defs(5), SYS_GID_MAX)
verb, top = sys.argv[1], Path(sys.argv[2])
ours = {0, os.geteuid(), top.stat().st_uid}
our_groups = {os.getegid(), top.stat().st_gid}


def secured(folder):
    """Makes a folder and those above it, if they are not there. Ends the program at one that others may change."""
    if folder == top or not folder.is_relative_to(top):
        return
    secured(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o755)
    about = folder.lstat()
    if about.st_uid not in ours:
        sys.exit(f"{folder} belongs to {login(about.st_uid)}, and root writes below it: give it to root or remove it")
    if stat.S_ISLNK(about.st_mode):
        secured(folder.resolve(strict=True))
    elif others_write(about):
        sys.exit(f"{folder} may be changed by others, and root writes below it: `chmod go-w {folder}`")


def others_write(about):
    by_group = about.st_mode & stat.S_IWGRP and about.st_gid >= LOGINS and about.st_gid not in our_groups
    return (by_group or about.st_mode & stat.S_IWOTH) and not about.st_mode & stat.S_ISVTX


def login(uid):
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return uid


def is_right(path, kind, owner, mode):
    about = path.lstat()
    return stat.S_IFMT(about.st_mode) == kind and stat.S_IMODE(about.st_mode) == mode and about.st_uid == owner


def put(file, content, mode):
    secured(file.parent)
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:  # never through a link
        os.fchmod(out.fileno(), mode)
        out.write(content)
    fresh.replace(file)


def make(folder, owner, mode):
    secured(folder.parent)
    if folder.is_symlink() and folder.lstat().st_uid in ours:
        folder = folder.resolve()
        secured(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        sys.exit(f"{folder} is to be a folder: {error.strerror}: look at it and remove it")
    if os.fstat(opened).st_uid != owner:
        os.fchown(opened, owner, -1)
    os.fchmod(opened, mode)


def place(entry):
    """Puts one in place if it is not; whether it was not."""
    path = Path(entry["path"])
    if "content" not in entry:
        owner = pwd.getpwnam(entry["owner"]).pw_uid if "owner" in entry else os.geteuid()
        mode = int(entry.get("mode", FOLDER_MODE), 8)
        there = path.resolve() if path.is_symlink() and path.lstat().st_uid in ours else path
        if os.path.lexists(there) and is_right(there, stat.S_IFDIR, owner, mode):
            return False
        if verb == "place":
            make(path, owner, mode)
        return True
    content, mode = entry["content"].encode(), int(entry.get("mode", FILE_MODE), 8)
    content = base64.b64decode(content) if entry.get("base64") else content
    there = os.path.lexists(path) and is_right(path, stat.S_IFREG, os.geteuid(), mode)
    if there and path.lstat().st_gid == os.getegid() and path.read_bytes() == content:
        return False
    if verb == "place":
        put(path, content, mode)
    return True


os.umask(0o022)
for each in json.load(sys.stdin):
    if place(each):
        print(each["path"])
