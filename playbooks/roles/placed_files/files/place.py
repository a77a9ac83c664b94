"""Run on a node: puts files in place, each whole, and prints the paths of those that were not so, one a line.

Argument: place | look, which only prints. Standard input: a JSON list of {"path","content"}. They belong to who runs
it, root on a machine, and everybody may read them; so are the folders made above them. One program for all files of a
role: a module for each would cost more than all of its work.
"""

import json
import os
import sys
from pathlib import Path

MODE = 0o644


def is_right(file, content):
    if file.is_symlink() or not file.is_file() or file.read_bytes() != content:
        return False
    about = file.stat()
    return about.st_mode & 0o7777 == MODE and (about.st_uid, about.st_gid) == (os.geteuid(), os.getegid())


def put(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(MODE)
    fresh.replace(file)


os.umask(0o022)
for each in json.load(sys.stdin):
    file, content = Path(each["path"]), each["content"].encode()
    if not is_right(file, content):
        print(file)
        if sys.argv[1] == "place":
            put(file, content)
