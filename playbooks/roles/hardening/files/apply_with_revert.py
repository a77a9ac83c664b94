"""Run on a node as root: tries settings of sshd and of the packet filter, and takes them back by itself.

begin SECONDS: the files, {path: text} on standard input, take the place of those that are there (an empty text: none),
and hold at once; whatever happens then, a reboot included, they go back after SECONDS. Prints the paths that changed;
with nothing to change it does nothing. What sshd or nft refuse goes back at once, with their words. keep: they stay.
revert: they go back.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

BEFORE = Path("/var/lib/gpufleet/settings-before.json")
UNITS = Path("/etc/systemd/system")
NAME = "gpufleet-revert"
FIREWALL, TABLE = "/etc/gpufleet/firewall.nft", ("inet", "gpufleet")
LOADER = "gpufleet-firewall.service"
SSH = "ssh" if Path("/usr/lib/systemd/system/ssh.service").exists() else "sshd"  # Debian's name, and everybody else's
ROOM = Path("/run/sshd")  # sshd wants it even to test settings, and where a socket starts sshd the first login makes it
LOADER_UNIT = f"""# Written by gpufleet.
[Unit]
DefaultDependencies=no
Before=network-pre.target
Wants=network-pre.target
ConditionPathExists={FIREWALL}
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {FIREWALL}
[Install]
WantedBy=sysinit.target
"""


def begin(files, seconds):
    BEFORE.parent.mkdir(parents=True, exist_ok=True)
    os.chown(BEFORE.parent, 0, 0)  # an earlier version gave it to the login of jobs, and root follows what stands there
    if begun():
        revert()  # of a trial that nobody ended
    changed = {path: text for path, text in files.items() if text != content(path)}
    if not changed:
        return
    BEFORE.unlink(missing_ok=True)
    with BEFORE.open("x") as out:
        out.write(json.dumps({path: content(path) for path in changed}))
    arm(seconds)
    place(changed)
    try:
        apply()
    except subprocess.CalledProcessError as error:
        revert()
        sys.exit(f"{' and '.join(changed)}: {(error.stderr or error.stdout).strip()}")
    print("\n".join(changed))


def begun():
    """Whether root has written down settings to go back to; a link, or a file of others, is none."""
    return os.path.lexists(BEFORE) and not BEFORE.is_symlink() and BEFORE.stat().st_uid == 0


def keep():
    disarm()
    BEFORE.unlink()


def revert():
    place(json.loads(BEFORE.read_text()))
    apply()
    BEFORE.unlink()
    disarm()


def apply():
    """Lets the files hold. Raises CalledProcessError if one of them is refused; then the running sshd is as it was."""
    ROOM.mkdir(mode=0o755, exist_ok=True)
    run("/usr/sbin/sshd", "-t")
    if Path(FIREWALL).exists():
        run("nft", "-f", FIREWALL)
        (UNITS / LOADER).write_text(LOADER_UNIT)
        run("systemctl", "--quiet", "enable", LOADER)
    elif (UNITS / LOADER).exists():
        run("nft", "add", "table", *TABLE)
        run("nft", "delete", "table", *TABLE)
        run("systemctl", "--quiet", "disable", LOADER)
        (UNITS / LOADER).unlink()
    run("systemctl", "try-reload-or-restart", SSH)


def arm(seconds):
    """Units of the disk and not of the moment: they outlive a reboot."""
    command = f"/usr/bin/python3 {Path(__file__).resolve()} revert"
    (UNITS / f"{NAME}.service").write_text(f"[Service]\nType=oneshot\nExecStart={command}\n")
    timer = f"[Timer]\nOnActiveSec={seconds}\nAccuracySec=1s\n[Install]\nWantedBy=timers.target\n"
    (UNITS / f"{NAME}.timer").write_text(timer)
    run("systemctl", "daemon-reload")
    run("systemctl", "--quiet", "enable", "--now", f"{NAME}.timer")


def disarm():
    run("systemctl", "--quiet", "disable", "--now", f"{NAME}.timer")
    for kind in ("service", "timer"):
        (UNITS / f"{NAME}.{kind}").unlink(missing_ok=True)


def place(files):
    for path, text in files.items():
        file = Path(path)
        if not text:
            file.unlink(missing_ok=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(file)


def content(path):
    return Path(path).read_text() if Path(path).exists() else ""


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


if __name__ == "__main__":
    if sys.argv[1] == "begin":
        begin(json.load(sys.stdin), int(sys.argv[2]))
    else:
        {"keep": keep, "revert": revert}[sys.argv[1]]()
