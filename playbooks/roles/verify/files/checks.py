"""Run on a node: checks that it is ready, writes the outcome and prints it.

Outcome: {"ready","checks":[{"name","ok","detail"}],"time"}. Arguments: EXPECTED (a JSON object) READY_FILE
(- for none). Fail-closed: the node is not ready from the start of the checks until all of them have passed.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PYTHON_SECONDS = 60  # an interpreter on a cold shared file system
VERSIONS = """
import importlib.metadata, platform
print("python", platform.python_version(), "· torch", importlib.metadata.version("torch"))
"""


class Fault(Exception):
    """Why a check has failed."""


def facts(expected):
    """node.json is whole and speaks of this node."""
    told = json.loads(Path(expected["facts"]).read_text())
    if (told["cluster"]["stack"], told["node"]) != (expected["stack"], expected["node"]):
        raise Fault(f"{expected['facts']} speaks of another node: run gpu_node.yml")
    return f"{told['node']['name']} of {told['cluster']['stack']}"


def environment(expected):
    """The interpreter of jobs runs, and torch is installed for it."""
    command = [expected["python"], "-c", VERSIONS]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_SECONDS, check=False)
    if answer.returncode:
        raise Fault(f"{expected['python']}: {last_line(answer.stderr)}")
    return answer.stdout.strip()


def package(expected):
    """The training package is the one its name says, to the last byte."""
    held = Path(expected["package"]).resolve(strict=True)
    manifest = (held / "MANIFEST").read_bytes()
    if not held.name.endswith(hashlib.sha256(manifest).hexdigest()[:16]):
        raise Fault(f"{held} is not what its name says: run gpu_node.yml")
    check = ["sha256sum", "--check", "--quiet", "--strict", "MANIFEST"]
    answer = subprocess.run(check, cwd=held, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise Fault(f"{held}: {answer.stdout.splitlines()[0]}: run gpu_node.yml")
    return held.name


def storage(expected):
    """Shared folders are there and take files."""
    for path in expected["storage"]:
        if not os.access(path, os.W_OK | os.X_OK):
            raise Fault(f"{path} is missing or takes no files")
    return ", ".join(expected["storage"]) or "none asked"


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "ended without a word"


def outcome(check, expected):
    """One check's result. Whatever hinders a check is a reason why the node is not ready."""
    try:
        return {"name": check.__name__, "ok": True, "detail": check(expected)}
    except Fault as fault:
        reason = str(fault)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        reason = f"{type(error).__name__}: {error}"
    return {"name": check.__name__, "ok": False, "detail": reason}


def write(file, report):
    """Puts the report in place whole; `-` is no file."""
    if file == "-":
        return
    fresh = Path(file).with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps(report) + "\n")
    fresh.replace(file)


def main(expected, file):
    unfinished = {"name": "checks", "ok": False, "detail": "the checks have not finished"}
    write(file, {"ready": False, "checks": [unfinished], "time": now()})
    checks = [outcome(check, expected) for check in (facts, environment, package, storage)]
    report = {"ready": all(check["ok"] for check in checks), "checks": checks, "time": now()}
    write(file, report)
    print(json.dumps(report))


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
