"""Run on a node as root: prints which of the asked limits and kernel parameters this node may set, as JSON.

Arguments: the limits and the kernel parameters, each as a JSON object. A container has a kernel that is not its own: of
the parameters only those of its own network namespace are its to set, and a limit above the one it was started with is
refused by the kernel (a login that asks for it would fail).
"""

import json
import resource
import sys
from pathlib import Path

CONTAINER_MARKS = ("/run/systemd/container", "/run/.containerenv", "/.dockerenv")


def may_raise(name, limit):
    kind = getattr(resource, f"RLIMIT_{name.upper()}")
    value = resource.RLIM_INFINITY if limit == "unlimited" else limit
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):  # the kernel's two ways to say no
        return False
    return True


def may_set(name):
    if container and not name.startswith("net."):
        return False
    try:
        with Path("/proc/sys", *name.split(".")).open("r+"):
            return True
    except OSError:  # absent in this namespace, or read-only
        return False


container = any(Path(mark).exists() for mark in CONTAINER_MARKS)
logins, kernel = (json.loads(argument) for argument in sys.argv[1:])
refused = [name for name in logins if not may_raise(name, logins[name])]
refused += [name for name in kernel if not may_set(name)]
print(json.dumps(sorted(refused)))
