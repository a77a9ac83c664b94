"""Run on a node as root: says who may log in as a tenant, and prints the files that were not so, one a line.

Argument: place | look, which only prints. Standard input: {"keys","sshd"}: {login: text of its keys}, and settings of
sshd. Keys lie where root alone writes, a file a login; the file of a login that is not listed goes. Before they hold,
sshd itself must say that it reads them there and nowhere else, for every tenant: else what was there comes back, and
the program ends with its words.
"""

import json
import subprocess
import sys
from pathlib import Path

KEYS = Path("/etc/gpufleet/keys.d")
SETTINGS = Path("/etc/ssh/sshd_config.d/00-gpufleet-tenants.conf")
READ, ALSO = "authorizedkeysfile /etc/gpufleet/keys.d/%u", "authorizedkeyscommand none"
SSH = "ssh" if Path("/usr/lib/systemd/system/ssh.service").exists() else "sshd"  # Debian's name, and everybody else's
ROOM = Path("/run/sshd")  # sshd wants it even to test settings, and where a socket starts sshd the first login makes it


def sshd(*words):
    return subprocess.run(["/usr/sbin/sshd", *words], capture_output=True, text=True, check=False)


def refusal(login):
    """Why sshd would not hold a tenant to its keys; empty if it does."""
    shown = sshd("-T", "-C", f"user={login},host=localhost,addr=127.0.0.1,laddr=127.0.0.1,lport=22")
    if shown.returncode:
        return shown.stderr.strip()
    said = [
        line for line in shown.stdout.splitlines() if line.startswith(("authorizedkeysfile", "authorizedkeyscommand "))
    ]
    return "" if {READ, ALSO} == set(said) else f"sshd says {'; '.join(said)} of {login}: look at /etc/ssh/sshd_config"


def put(file, text):
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.replace(file)


def content(file):
    return file.read_text() if file.exists() else None


def main(verb, config):
    files = {SETTINGS: config["sshd"], **{KEYS / login: text for login, text in config["keys"].items()}}
    stale = [file for file in KEYS.iterdir() if file not in files] if KEYS.is_dir() else []
    before = {file: content(file) for file in files}
    changed = [file for file, text in files.items() if before[file] != text]
    print("\n".join(map(str, [*changed, *stale])))
    if verb == "look":
        return
    for file in stale:
        file.unlink()
    for file in changed:
        put(file, files[file])
    ROOM.mkdir(mode=0o755, exist_ok=True)
    tested = sshd("-t")
    if reason := tested.stderr.strip() if tested.returncode else next(filter(None, map(refusal, config["keys"])), ""):
        put(SETTINGS, before[SETTINGS]) if before[SETTINGS] is not None else SETTINGS.unlink()
        sys.exit(f"tenants: {reason}")
    if SETTINGS in changed:
        subprocess.run(["systemctl", "try-reload-or-restart", SSH], check=True)


main(sys.argv[1], json.load(sys.stdin))
