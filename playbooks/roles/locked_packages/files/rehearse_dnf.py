"""Run on a node as root: prints what a transaction would do, as JSON: {"problems","install","remove","moves"}.

The arguments, the answer and the rules are those of rehearse_apt.py, in dnf's words. install: the whole names of the
packages that would come. It asks dnf's own resolver, by what is known of the repositories; only where that is too
little they are read anew, with any error as an error.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dnf  # pyright: ignore[reportMissingImports]: the distribution's own interpreter has it

KERNEL = re.compile(r"kernel(-core|[\d.]+)?")
MIB = 1024**2
required, astray, names, driver = (json.loads(argument) for argument in sys.argv[1:])
locked = re.compile("|".join(names))


def read_repositories():
    """Reads them anew, and takes the keys that our sources name; the errors."""
    ask = ["dnf", "--quiet", "--assumeyes", "--refresh", "makecache"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    errors = [line for line in answer.stderr.splitlines() if line.startswith("Error")]
    return errors or ([f"dnf ended with {answer.returncode}"] if answer.returncode else [])


def without_room(base, packages):
    """A line for each file system that is too small: archives and their content may lie on one, or on two."""
    needed, folders = {}, {}
    sizes = ((base.conf.cachedir, "downloadsize"), ("/usr", "installsize"))
    for folder, size in sizes:
        place = Path(folder).stat().st_dev
        needed[place] = needed.get(place, 0) + sum(getattr(package, size) for package in packages)
        folders[place] = folder
    for place, folder in folders.items():
        free = shutil.disk_usage(folder).free
        if needed[place] > free:
            yield f"they need {needed[place] / MIB:.1f} MiB, and {free / MIB:.1f} MiB are free at {folder}: free some"


def prepared(base):
    base.conf.read()
    base.conf.install_weak_deps = False
    base.conf.clean_requirements_on_remove = False
    base.conf.substitutions.update_from_etc("/")
    base.read_all_repos()
    base.fill_sack_from_repos_in_cache()


def rehearsed():
    with dnf.Base() as base:
        prepared(base)
        followers = [name for name in astray if name not in required]
        offered = base.sack.query().available().filter(name=followers, version=driver)
        follow = dict.fromkeys({package.name for package in offered}, f"{driver}-*")
        remove = [name for name in followers if name not in follow]
        for name, version in {**required, **follow}.items():
            base.install(name if version == "*" else f"{name}-{version}")
        for name in remove:
            base.remove(name)
        base.resolve(allow_erasing=True)
        comes, goes = set(base.transaction.install_set), set(base.transaction.remove_set)
        kernels = [package.name for package in comes if KERNEL.fullmatch(package.name)]
        gone = {package.name for package in goes} - {package.name for package in comes}
        problems = [f"{name} would be removed" for name in sorted(gone) if not locked.fullmatch(name)]
        problems += [
            f"{name} would be installed, and the node boot into a kernel without its driver" for name in kernels
        ]
        return {
            "problems": [*problems, *without_room(base, comes)],
            "install": sorted(map(str, comes)),
            "remove": remove,
            "moves": sorted({package.name for package in goes}),
        }


def answered():
    """What dnf refuses is a problem, too, in its own words."""
    try:
        return rehearsed()
    except dnf.exceptions.Error as error:
        words = " ".join(str(error).split())
        return {"problems": [words], "install": [], "remove": [], "moves": []}


result = answered()
if result["problems"] or result["remove"]:
    unread = read_repositories()
    result = {**result, "problems": unread} if unread else answered()
print(json.dumps(result))
