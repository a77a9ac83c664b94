"""Run on a node as root: prints what a transaction would do, as JSON: {"problems","install","remove","moves"}.

Arguments: WANTED (name → version pattern), ASTRAY (names), NAMES (regular expressions) and DRIVER (a version), as JSON.
What is astray follows to the driver's version, or goes if the repository has none of it; both stand in `install` and
`remove`. moves: the installed packages that would change or go. problems: why it must not run, one line each: no kernel
may come along, nothing may go but what the lock rules, and all of it must fit on the disk. Where the package lists
know too little they are read anew, with any error as an error: apt would go on with old lists and a warning.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

LOCK, LOCK_SECONDS = "/var/lib/apt/lists/lock", 300
DOWN, DOWN_SECONDS = re.compile("  50[0-9]  |Could not connect to|Temporary failure resolving"), 60
# The repeats are ours: apt's own, before 3.1.3, wait for ever when one repository of a server is down (LP: #2003851).
UPDATE = ("update", "--quiet", "--option", "APT::Update::Error-Mode=any", "--option", "Acquire::Retries=0")
# What `apt-cache show` tells of a package → the folder that takes it, and its unit in bytes.
TAKEN = {"Size": ("/var/cache/apt/archives", 1), "Installed-Size": ("/usr", 1024)}
MIB = 1024**2
required, astray, names, driver = (json.loads(argument) for argument in sys.argv[1:])
locked = re.compile("|".join(names))
FREELY = ("--allow-downgrades", "--allow-change-held-packages", "--option", "APT::Ignore-Hold=true")


def apt_get(*arguments):
    answer = subprocess.run(["apt-get", *arguments], capture_output=True, text=True, check=False)
    errors = [line for line in answer.stderr.splitlines() if line.startswith("E:")]
    return answer.stdout, errors or ([f"apt-get ended with {answer.returncode}"] if answer.returncode else [])


def read_lists():
    """Reads the package lists anew; the errors. apt waits for no other apt here, and at the first boot there is one."""
    began = time.monotonic()
    while True:
        _, errors = apt_get(*UPDATE)
        if time.monotonic() - began >= patience(errors):
            return errors
        time.sleep(5)  # no event tells that a lock is free, and to wait in line for it would take it from apt


def patience(errors):
    """The seconds in which they may pass by themselves."""
    message = "\n".join(errors)
    return LOCK_SECONDS if LOCK in message else DOWN_SECONDS if DOWN.search(message) else 0


def offered(name):
    """Whether the repositories have the package at the driver's version; `madison` prints `name | version | source`."""
    listing = subprocess.run(["apt-cache", "madison", name], capture_output=True, text=True, check=True).stdout
    return any(line.split("|")[1].strip().startswith(f"{driver}-") for line in listing.splitlines())


def without_room(packages):
    """A line for each file system that is too small: archives and their content may lie on one, or on two."""
    output = subprocess.run(["apt-cache", "show", *packages], capture_output=True, text=True, check=True).stdout
    needed, folders = {}, {}
    for kind, size in re.findall(r"^(Installed-Size|Size): (\d+)$", output, re.MULTILINE):
        folder, unit = TAKEN[kind]
        place = Path(folder).stat().st_dev
        needed[place], folders[place] = needed.get(place, 0) + int(size) * unit, folder
    for place, folder in folders.items():
        free = shutil.disk_usage(folder).free
        if needed[place] > free:
            yield f"they need {needed[place] / MIB:.1f} MiB, and {free / MIB:.1f} MiB are free at {folder}: free some"


def rehearsed():
    followers = {name: offered(name) for name in astray if name not in required}
    everything = {**required, **{name: f"{driver}-*" for name in followers if followers[name]}}
    install = [f"{name}={version}" if version != "*" else name for name, version in everything.items()]
    remove = [name for name in followers if not followers[name]]
    packages = [*install, *(f"{name}-" for name in remove)]
    output, problems = apt_get("--simulate", "--yes", "--no-install-recommends", *FREELY, "install", *packages)
    moves, comes = [], []
    for action, name, *rest in (line.split() for line in output.splitlines() if line.startswith(("Inst", "Remv"))):
        if action == "Inst":
            comes.append(f"{name}={next(word for word in rest if word.startswith('(')).strip('(')}")
        if action == "Remv" or rest[0].startswith("["):  # [the version that is installed]
            moves.append(name)
        if action == "Remv" and not locked.fullmatch(name):
            problems.append(f"{name} would be removed")
        if action == "Inst" and name.startswith("linux-image-"):
            problems.append(f"{name} would be installed, and the node boot into a kernel without its driver")
    if comes:
        problems += without_room(comes)
    return {"problems": problems, "install": install, "remove": remove, "moves": moves}


result = rehearsed()
if result["problems"] or result["remove"]:
    unread = read_lists()
    result = {**result, "problems": unread} if unread else rehearsed()
print(json.dumps(result))
