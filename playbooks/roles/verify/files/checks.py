"""Checks that a node is ready, writes the outcome and prints it.

Outcome: {"ready","checks":[{"name","ok","detail"}],"time"}. Fail-closed: the node is not ready from the start of the
checks until all of them have passed. GPUs are checked where the node is to have some.
"""

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import driver
import gpus
import network
import software
from node import CheckError, Node

PROVEN_MOST = 5
EVERYWHERE = (
    software.facts,
    software.environment,
    software.package,
    software.mounts,
    software.storage,
    software.disk,
    network.rdma,
    network.all_reduce,
)
WITH_GPUS = (
    driver.versions,
    driver.kernel,
    gpus.gpus,
    gpus.slices,
    gpus.gpu_memory,
    gpus.clocks,
    gpus.xids,
    gpus.fabric,
    driver.packages,
    gpus.dcgm,
    driver.containers,
)


def main(expected, file):
    """expected: what must be, as the role's defaults name it. file: where the node's word goes, `-` for nowhere."""
    node = Node()
    try:
        write(file, refused("checks", "the checks have not finished"))
        report = checked(node, expected)
        write(file, report)
        if report["ready"] and expected["gpus"]:
            proven(file, driver.locked(node, expected))
    except OSError as error:  # a full disk takes no word, and the old one no longer holds
        Path(file).unlink(missing_ok=True)
        report = refused("word", f"{file}: {error.strerror}: free some space")
    print(json.dumps(report))


def refused(check, reason):
    """A report of one check that failed."""
    return {"ready": False, "checks": [{"name": check, "ok": False, "detail": reason}], "time": now()}


def checked(node, expected):
    """Every check's outcome."""
    checks = [outcome(check, node, expected) for check in (*EVERYWHERE, *(WITH_GPUS if expected["gpus"] else ()))]
    return {"ready": all(check["ok"] for check in checks), "checks": checks, "time": now()}


def outcome(check, node, expected):
    """One check's result. Whatever hinders a check is a reason why the node is not ready."""
    try:
        return {"name": check.__name__, "ok": True, "detail": check(node, expected)}
    except CheckError as fault:
        reason = str(fault)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        reason = f"{type(error).__name__}: {error}"
    return {"name": check.__name__, "ok": False, "detail": reason}


def proven(file, lock):
    """Keeps the locks that the node was ready with, the newest first: what it can go back to."""
    if file != "-":
        known = Path(file).with_name("proven.json")
        before = json.loads(known.read_text()) if is_ours(known) else []
        write(known, [lock, *(other for other in before if other != lock)][:PROVEN_MOST])


def is_ours(file):
    """A file of who runs the checks: a link, or what another login wrote, counts for nothing."""
    about = file.lstat() if os.path.lexists(file) else None
    return about is not None and stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()


def write(file, document):
    """Puts a document in place whole, and never through a link."""
    if file == "-":
        return
    fresh = Path(file).with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.unlink(missing_ok=True)
    with fresh.open("x") as out:
        out.write(json.dumps(document) + "\n")
    fresh.replace(file)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
