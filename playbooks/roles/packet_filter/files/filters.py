"""Run on a node as root: loads a table of nftables, now and at every boot, and prints what was not so, one a line.

Arguments: load | look, which only prints, NAME, and USERS, a JSON object {word: [login or uid]}. Standard input: the
chains of the table `inet gpufleet_NAME`; `$word` in them is the set of those logins' numbers, of the ones that there
are. Ends with 3 where there is no nft. Each table is a file and a unit of its own: none takes away another's rules.
"""

import json
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

UNITS, FILES = Path("/etc/systemd/system"), Path("/etc/gpufleet")
NO_NFT = 3
UNIT = """# Written by gpufleet.
[Unit]
Description=Packet filter {name}
DefaultDependencies=no
Before=network-pre.target
Wants=network-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {file}
[Install]
WantedBy=sysinit.target
"""


def numbers(logins):
    """The numbers of logins, each once; a number stands for itself, a name that the node does not have for none."""
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    uids = (login if isinstance(login, int) else known.get(login) for login in logins)
    return sorted({number for number in uids if number is not None})


def table(name, users, chains):
    defined = "".join(
        f"define {word} = {{ {', '.join(map(str, numbers(logins)))} }}\n" for word, logins in users.items()
    )
    whole = f"table inet gpufleet_{name}"
    return f"# Written by gpufleet.\n{defined}{whole}\ndelete {whole}\n{whole} {{\n{chains}}}\n"


def run(*command):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"`{' '.join(map(str, command))}`: {(ran.stderr or ran.stdout).strip()}")


def is_loaded(name):
    ask = ["nft", "list", "table", "inet", f"gpufleet_{name}"]
    return subprocess.run(ask, capture_output=True, check=False).returncode == 0


def differs(path, text):
    return not path.is_file() or path.read_text() != text


def main(verb, name, users):
    if not shutil.which("nft"):
        sys.exit(NO_NFT)
    file, unit = FILES / f"{name}.nft", UNITS / f"gpufleet-{name}.service"
    files = {file: table(name, json.loads(users), sys.stdin.read()), unit: UNIT.format(name=name, file=file)}
    wrong = [path for path, text in files.items() if differs(path, text)]
    faults = [*map(str, wrong), *([] if is_loaded(name) else [f"table gpufleet_{name}"])]
    print("\n".join(faults))
    if verb == "look" or not faults:
        return
    FILES.mkdir(mode=0o755, exist_ok=True)
    for path in wrong:
        fresh = path.with_suffix(".new")
        fresh.write_text(files[path])
        if path == file:
            run("nft", "--check", "--file", fresh)  # what nft refuses does not wait for the next boot
        fresh.replace(path)
    run("nft", "--file", file)
    if unit in wrong:
        run("systemctl", "--quiet", "enable", "--now", unit.name)


main(*sys.argv[1:])
