"""Run on a node as root: prints what is wrong with the tenants that are asked for, and which logins are ours, as JSON.

Standard input: {"tenants","mounts"}, `tenants_wanted` and mounts that are to be for some logins alone. Prints
{"problems","uids"}: a line for each mistake, which names the variable, and the numbers of all tenants, also of those
that are asked for no longer: their processes may go on. Whether a mount is closed to others is tried, as `nobody`.

A login is ours by a file of its name in /etc/gpufleet/tenants.d, root's own, which holds its number; one of an earlier
version by the first line of its slice. Any other login or group of the name, or of the number, is somebody's, and stays
as it is. Sources: useradd(8), "Caveats"; login.defs(5), UID_MIN; systemd, "Users, Groups, UIDs and GIDs"; sshd(8),
"AUTHORIZED_KEYS FILE FORMAT", whose options are not for a tenant to bring.
"""

import grp
import json
import os
import pwd
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

MARKS = Path("/etc/gpufleet/tenants.d")
SLICE = "/etc/systemd/system/user-{}.slice.d/50-gpufleet.conf"
NAME = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
LEAST_UID, MOST_UID = 1000, 59999
KEY = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/]{16,}={0,3}( [^\x00-\x1f\x7f]*)?"
)
NOBODY, REFUSED, TRY_SECONDS = 65534, 3, 20
WHOLE = ("uid", "cpu_percent", "memory_gib", "tasks")
LEAST = {"cpu_percent": 1, "memory_gib": 1, "tasks": 1}


def marked(name):
    """The number of a login that is ours, or None."""
    with suppress(FileNotFoundError):
        return int((MARKS / name).read_text())
    with suppress(KeyError, FileNotFoundError):
        uid = pwd.getpwnam(name).pw_uid
        if Path(SLICE.format(uid)).read_text().startswith(f"# Written by gpufleet: the share of {name},"):
            return uid
    return None


def known(look_up, key):
    """What the node has by a name or number, or None."""
    with suppress(KeyError):
        return look_up(key)
    return None


def mistakes(tenant):
    """What is wrong with one tenant by itself: (key, reason)."""
    name, uid = tenant["name"], tenant["uid"]
    if not NAME.fullmatch(name):
        yield "name", f"{name!r} must be a small letter or _, then at most 30 of a-z, 0-9, _ and -"
    if not LEAST_UID <= uid <= MOST_UID:
        yield "uid", f"{uid} must be {LEAST_UID} to {MOST_UID}: others are the system's"
    for number, key in enumerate(tenant["public_keys"]):
        if not KEY.fullmatch(key):
            yield f"public_keys[{number}]", f"{key[:40]!r} must be one line, TYPE BASE64 COMMENT, without options"
    for number, gpu in enumerate(tenant["gpus"]):
        if gpu < 0:
            yield f"gpus[{number}]", f"{gpu} must be a GPU's number, from 0 on"
    for key, least in LEAST.items():
        if tenant.get(key, least) < least:
            yield key, f"{tenant[key]} is too small; the least is {least}"


def taken(tenant):
    """Why the name or the number is somebody else's: (key, reason)."""
    name, uid, ours = tenant["name"], tenant["uid"], marked(tenant["name"])
    kind = "login" if known(pwd.getpwnam, name) else "group" if known(grp.getgrnam, name) else ""
    if ours is None and kind:
        yield "name", f"{name} is a {kind} of this node that is no tenant of ours: choose another name"
    if ours not in (None, uid):
        yield "uid", f"{name} has {ours} on this node, not {uid}: a login keeps its number"
    if (login := known(pwd.getpwuid, uid)) and login.pw_name != name:
        yield "uid", f"{uid} is {login.pw_name} on this node: choose another number"
    if ours is not None and (login := known(pwd.getpwnam, name)) and login.pw_uid != ours:
        yield "name", f"{name} is {login.pw_uid} on this node, and was made as {ours}: look who changed it"


def listing(path):
    try:
        os.listdir(path)  # noqa: PTH208 (a folder of a client that is gone has other errors)
    except PermissionError:
        return REFUSED
    return 0


def open_to_all(path):
    """Whether a login that owns nothing looks into a folder, or does not end with a refusal of that."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            signal.alarm(TRY_SECONDS)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            code = listing(path)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != REFUSED


def problems(tenants, mounts):
    for number, tenant in enumerate(tenants):
        wrong = list(mistakes(tenant))
        for key, reason in wrong or taken(tenant):
            yield f"tenants_wanted[{number}].{key}: {reason}"
        for key in ("name", "uid"):
            if tenant[key] in [other[key] for other in tenants[:number]]:
                yield f"tenants_wanted[{number}].{key}: {tenant[key]} stands there twice"
    if tenants and (shared := [path for path in mounts if open_to_all(path)]):
        yield (
            f"tenants_wanted: every login of the node reads {', '.join(shared)}: restart what an earlier version has "
            "mounted (`systemctl restart data.mount`), leave the storage out of this stack, or let all tenants share "
            "it with -e tenants_share_storage=true"
        )


def plain(tenant):
    """With numbers as such: YAML's quotes do not make another tenant of one."""
    numbers = {key: int(tenant[key]) for key in WHOLE if key in tenant}
    return {**tenant, **numbers, "name": str(tenant["name"]), "gpus": [int(gpu) for gpu in tenant["gpus"]]}


config = json.load(sys.stdin)
tenants = [plain(tenant) for tenant in config["tenants"]]
wrong = list(problems(tenants, config["mounts"]))
marks = [int(mark.read_text()) for mark in MARKS.iterdir()] if MARKS.is_dir() else []
print(json.dumps({"problems": wrong, "uids": sorted({*marks, *(tenant["uid"] for tenant in tenants)})}))
