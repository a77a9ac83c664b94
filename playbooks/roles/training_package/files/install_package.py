"""Run on a node: puts a training package in place, its archive in base64 on standard input. Arguments: FOLDER NAME.

Whole or not at all: it is unpacked aside and renamed, and `current` leads to the old one until it leads to the new one.
Packages of other names are removed afterwards, but those that jobs run from.
"""

import base64
import io
import shutil
import sys
import tarfile
from contextlib import suppress
from pathlib import Path


def in_use(package):
    """Whether a process has it in its environment: a job is started with the package itself, not with `current`."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended meanwhile, or is another login's
            if b"%s\0" % bytes(package.resolve()) in environment.read_bytes():
                return True
    return False


folder, name = Path(sys.argv[1]), sys.argv[2]
aside = folder / f"{name}.part"
shutil.rmtree(aside, ignore_errors=True)  # of a run that did not finish
aside.mkdir(parents=True)
with tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.stdin.read()))) as tar:
    tar.extractall(aside)
if (folder / name).exists():
    shutil.rmtree(folder / name)
aside.rename(folder / name)

link = folder / "current.part"
link.unlink(missing_ok=True)
link.symlink_to(name)
current = folder / "current"
if current.is_dir() and not current.is_symlink():
    shutil.rmtree(current)
link.replace(current)
for other in folder.glob("training-*"):
    if other.name != name and not in_use(other):
        shutil.rmtree(other)
