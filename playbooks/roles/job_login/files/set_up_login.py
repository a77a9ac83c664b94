"""Run on a node as root: makes the login that jobs run as, the folders it writes to, and hides processes between users.

Argument: settle | look, which only prints. Standard input: the role's `job_login_wanted`. Prints what was not as it
should be, one thing a line.

The login has no password, no groups but its own, and an account that has expired: sshd, sudo, su, cron and at refuse it
whatever it puts in its home, and root alone starts programs as it (`as-job`). Folders that it owns are opened without
following links, and root writes nothing below them but the folder `runs` itself.
Sources: useradd(8), shadow(5), sudo(8) "-U", open(2) "O_NOFOLLOW", proc(5) "hidepid", systemd.exec(5)
"SupplementaryGroups".
"""

import errno
import grp
import json
import os
import pwd
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
EXPIRED_DATE, EXPIRED_DAY = "1970-01-02", "1"
UNITS = Path("/etc/systemd/system")
HIDING = "gpufleet-proc.service"
AS_JOB = Path("/usr/local/lib/gpufleet/as-job")
ROOT = 0


def main(verb, config):
    refuse(config)
    for label, right, make in steps(config):
        if not right():
            print(label)
            if verb == "settle":
                make()


def steps(config):
    """What must be, in order: its label, whether it is so, and what makes it so."""
    uid, state = config["uid"], Path(config["state"])
    yield f"login {config['name']}", lambda: has_login(config), lambda: make_login(config)
    yield folder_step(Path(config["home"]), uid, uid, 0o700)
    yield f"folder {state}", lambda: is_roots_alone(state), lambda: take_over(state)
    operator = pwd.getpwnam(config["operator"]).pw_uid
    yield folder_step(state / "jobs", operator, uid, 0o2750)
    stored = [Path(path) for path in config["storage"] if Path(path).is_dir()]
    mounted = [Path(path) for path in config["mounted"] if Path(path, "runs").is_dir()]  # jobs make it there themselves
    for above in (state, *stored, *mounted):
        yield runs_step(above / "runs", uid, operator)
    yield file_step(AS_JOB, config["as_job"], 0o755)
    if config["hide"]:
        yield from hiding(config)


def refuse(config):
    """Ends it all where the login is another's, or can do more than it should."""
    name, uid = config["name"], config["uid"]
    holders = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid == uid}
    holders |= {entry.gr_name for entry in grp.getgrall() if entry.gr_gid == uid}
    if others := sorted(holders - {name}):
        sys.exit(f"login: the number {uid} is {others[0]}'s: set job_login_uid to one that is free on every node")
    try:
        there = pwd.getpwnam(name)
    except KeyError:
        return
    if (there.pw_uid, there.pw_gid, there.pw_dir) != (uid, uid, config["home"]):
        sys.exit(f"login: {name} is another login already ({there.pw_uid}, {there.pw_dir}): set job_login_name")
    more = {grp.getgrgid(gid).gr_name for gid in os.getgrouplist(name, uid) if gid != uid} - set(config["groups"])
    if more:
        sys.exit(f"login: {name} is in {', '.join(sorted(more))}: take it out (`gpasswd -d {name} GROUP`)")
    with suppress(FileNotFoundError):  # no sudo, no rules of it
        answer = started("sudo", "-n", "-l", "-U", name)
        if "not allowed to run sudo" not in answer.stdout + answer.stderr:
            sys.exit(f"login: {name} may use sudo: take it out of /etc/sudoers and /etc/sudoers.d")


def has_login(config):
    lines = Path("/etc/shadow").read_text().splitlines()
    fields = next((line.split(":") for line in lines if line.startswith(f"{config['name']}:")), None)
    return fields is not None and fields[1].startswith(("!", "*")) and fields[7] == EXPIRED_DAY


def make_login(config):
    name, number = config["name"], str(config["uid"])
    if name not in (entry.gr_name for entry in grp.getgrall()):
        run("groupadd", "--system", "--gid", number, name)
    if name not in (entry.pw_name for entry in pwd.getpwall()):
        about = ["--home-dir", config["home"], "--create-home", "--shell", "/usr/sbin/nologin", "--comment", "jobs"]
        run("useradd", "--system", "--uid", number, "--gid", number, *about, name)
    run("usermod", "--lock", "--expiredate", EXPIRED_DATE, name)


def folder_step(path, uid, gid, mode):
    """A folder in one of root's."""

    def make():
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        with opened(path) as folder:
            give(folder, uid, gid, mode)

    return f"folder {path}", lambda: is_folder(path, uid, gid, mode), make


def is_roots_alone(state):
    if not is_folder(state, ROOT, ROOT, 0o755):
        return False
    with opened(state) as folder:
        return not foreign(folder)


def take_over(state):
    """Makes the folder of reports root's; earlier versions gave it to the operator, who may have left links there."""
    state.mkdir(mode=0o755, parents=True, exist_ok=True)
    with opened(state) as folder:
        give(folder, ROOT, ROOT, 0o755)
        for name in foreign(folder):
            os.unlink(name, dir_fd=folder)


def foreign(folder):
    """Names of what is neither a folder nor a file of root's own with that one name."""

    def own(about):
        return stat.S_ISREG(about.st_mode) and about.st_uid == ROOT and about.st_nlink == 1

    return [name for name, about in inside_of(folder) if not stat.S_ISDIR(about.st_mode) and not own(about)]


def runs_step(path, uid, operator):
    """The folder of runs, which jobs own. In earlier versions they ran as the operator: then it changes hands."""

    def make():
        try:
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            with opened(path) as runs:
                owner, fresh = os.fstat(runs).st_uid, not inside_of(runs)
                if owner == operator and not fresh:
                    require_idle(operator)
                    hand_over(runs, operator, uid)
                elif owner not in (uid, operator) and not (owner == ROOT and fresh):
                    sys.exit(f"{path}: belongs to the login {owner}: give it to {uid}, or move it away")
                give(runs, uid, uid, 0o750)
        except OSError as error:
            sys.exit(f"{path}: {error.strerror}, even as root: make it where it is stored, owned by {uid}:{uid}")

    return f"folder {path}", lambda: is_folder(path, uid, uid, 0o750), make


def require_idle(operator):
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if process.stat().st_uid == operator and words[1:4] == [b"-m", b"training", b"launch"]:
                sys.exit(f"busy: process {process.name} is a job of an earlier version: stop it, then run this again")


def hand_over(folder, old, new):
    """Gives `new` the files and folders below an open folder that are `old`'s, each opened and looked at first.

    Not links, pipes and devices, and no file with several names: one of them may be elsewhere.
    """
    for name, seen in inside_of(folder):
        if not (stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode)):
            continue
        inside = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            about = os.fstat(inside)
            if about.st_uid != old:
                continue
            if stat.S_ISDIR(about.st_mode):
                hand_over(inside, old, new)
                os.fchown(inside, new, new)
            elif stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
                os.fchown(inside, new, new)
        finally:
            os.close(inside)


def hiding(config):
    """Who sees the processes of others: root, and the services that ask of whom they are."""
    group = config["seeing_group"]

    def number():
        return next((entry.gr_gid for entry in grp.getgrall() if entry.gr_name == group), None)

    yield f"group {group}", lambda: number() is not None, lambda: run("groupadd", "--system", group)
    reload = ("systemctl", "daemon-reload")
    for service in filter(is_installed, config["seeing_services"]):
        extra = f"# Written by gpufleet.\n[Service]\nSupplementaryGroups={group}\n"
        restart = ("systemctl", "try-restart", f"{service}.service")
        yield file_step(UNITS / f"{service}.service.d/gpufleet.conf", extra, 0o644, reload, restart)
    unit = config["hiding_unit"].replace("GID", str(number()))
    yield file_step(UNITS / HIDING, unit, 0o644, reload, ("systemctl", "--quiet", "enable", HIDING))
    yield "processes of others", lambda: is_hidden(number()), lambda: run("systemctl", "restart", HIDING)


def is_installed(service):
    return Path(f"/usr/lib/systemd/system/{service}.service").is_file()


def is_hidden(group):
    """By the options of /proc (proc(5), mountinfo); kernels before 5.8 call `invisible` 2."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    options = next(fields[-1].split(",") for fields in reversed(mounts) if fields[4] == "/proc")
    return f"gid={group}" in options and not {"hidepid=invisible", "hidepid=2"}.isdisjoint(options)


def file_step(path, content, mode, *commands):
    """A file of root's in folders of root's, and what is to be run where it was not there as it is."""

    def right():
        if path.is_symlink() or not path.is_file():
            return False
        about = path.stat()
        return (about.st_mode & 0o7777, about.st_uid) == (mode, ROOT) and path.read_text() == content

    def make():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_text(content)
        fresh.chmod(mode)
        fresh.replace(path)
        for command in commands:
            run(*command)

    return str(path), right, make


def inside_of(folder):
    """Names and kinds of what is in an open folder, as they are, not where they lead."""
    with os.scandir(folder) as entries:
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]


def is_folder(path, uid, gid, mode):
    try:
        about = path.lstat()
    except FileNotFoundError:
        return False
    now = (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode))
    return stat.S_ISDIR(about.st_mode) and now == (uid, gid, mode)


@contextmanager
def opened(path):
    try:
        folder = os.open(path, FOLDER)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            sys.exit(f"{path}: a link or no folder: remove it")
        raise
    try:
        yield folder
    finally:
        os.close(folder)


def give(folder, uid, gid, mode):
    os.fchown(folder, uid, gid)
    os.fchmod(folder, mode)


def started(*command):
    return subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False)


def run(*command):
    answer = started(*command)
    if answer.returncode:
        words = (answer.stderr + answer.stdout).strip().splitlines() or [f"exit code {answer.returncode}"]
        sys.exit(f"`{' '.join(command)}`: {words[0]}")
    return answer.stdout


if __name__ == "__main__":
    os.umask(0o022)
    main(sys.argv[1], json.load(sys.stdin))
