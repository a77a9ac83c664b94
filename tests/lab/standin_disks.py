"""The disks of a lab machine, which has none: what stands in for blkid, mdadm, cryptsetup, mkfs and mount there.

Runs inside the machine with its own Python. /var/lib/standin/disks.json says what is on each disk ("" for nothing,
"gpt" for partitions), and changes as the programs write to them. Exit codes are those of blkid(8), mdadm(8),
cryptsetup(8), mount(8).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

DISKS = Path("/var/lib/standin/disks.json")
CONTENT = Path("/var/lib/standin/content")
DEVICES = Path("/dev")


def state():
    return json.loads(DISKS.read_text())


def keep(disks):
    DISKS.write_text(json.dumps(disks))
    return 0


def show(disks, *more):
    """A device appears: as a plain file, since a container makes no devices."""
    for device in more:
        Path(device).parent.mkdir(parents=True, exist_ok=True)
        Path(device).touch()
    return keep(disks)


def hardware():
    """At boot: the disks appear, those of a striped or encrypted device only once it is assembled or opened."""
    for device in state():
        if Path(device).parent == DEVICES:
            Path(device).touch()
        if device.startswith("/dev/nvme"):
            model = Path("/run/standin/block", Path(device).name, "device/model")
            model.parent.mkdir(parents=True, exist_ok=True)
            model.write_text("Amazon EC2 NVMe Instance Storage        \n")
    if Path("/run/standin/block").exists():
        layers = "lowerdir=/run/standin/block:/sys/block"
        subprocess.run(["mount", "-t", "overlay", "standin", "-o", layers, "/sys/block"], check=True)


def blkid(arguments):
    """The answer to --probe --output export."""
    there = state().get(arguments[-1], "")
    if there:
        print(f"DEVNAME={arguments[-1]}\n{'PTTYPE' if there == 'gpt' else 'TYPE'}={there}")
    return 0 if there else 2


def mdadm(arguments):
    array = arguments[1]
    members = [word for word in arguments[2:] if word.startswith("/dev/")]
    disks = state()
    if arguments[0] == "--create":
        if "--run" not in arguments and any(disks[member] for member in members):
            print(f"mdadm: {members[0]} appears to contain something", file=sys.stderr)
            return 2
        disks.update(dict.fromkeys(members, "linux_raid_member"), **{array: ""})
    return show(disks, array)


def cryptsetup(arguments):
    disks = state()
    device = next(word for word in arguments if word.startswith("/dev/"))
    if arguments[0] == "luksFormat":
        return keep({**disks, device: "crypto_LUKS"})
    opened = f"/dev/mapper/{arguments[-1]}"
    return show({opened: "", **disks}, opened)


def mkfs(arguments, kind):
    return keep({**state(), arguments[-1]: kind})


def mount(arguments):
    """A disk of ours is a folder that is bound there; everything else is the real program's."""
    if len(arguments) < 2 or arguments[-2] not in state():
        os.execv("/usr/bin/mount", ["mount", *arguments])
    content = CONTENT / Path(arguments[-2]).name
    content.mkdir(parents=True, exist_ok=True)
    return subprocess.run(["/usr/bin/mount", "--bind", content, arguments[-1]], check=False).returncode


def bucket(arguments):
    """A mount helper of a client of object storage: SOURCE FOLDER -o OPTIONS, whose modes it takes."""
    source = arguments[0].split("://")[-1].split(":")[-1].strip("/")
    content = CONTENT / source
    if not content.is_dir():
        print(f"Error: Failed to create S3 client: no bucket {source}", file=sys.stderr)
        return 1
    (CONTENT / f"{source}.options").write_text(arguments[-1])
    said = dict(option.partition("=")[::2] for option in arguments[-1].split(","))
    content.chmod(int(said.get("dir-mode", "0755"), 8) & ~int(said.get("umask", "0"), 8))
    return subprocess.run(["/usr/bin/mount", "--bind", content, arguments[1]], check=False).returncode


def ossfs2(arguments):
    """mount FOLDER -c FILE, with the bucket in the file."""
    verb, folder, _, file = arguments
    options = [line for line in Path(file).read_text().splitlines() if line.startswith("--")]
    source = next(option.partition("=")[2] for option in options if option.startswith("--oss_bucket="))
    return bucket([source, folder, " ".join(options)]) if verb == "mount" else 1


PROGRAMS = {
    "blkid": blkid,
    "mdadm": mdadm,
    "cryptsetup": cryptsetup,
    "mount": mount,
    "bucket": bucket,
    "ossfs2": ossfs2,
}

if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "hardware":
        hardware()
    else:
        sys.exit(mkfs(rest, verb.partition(".")[2]) if verb.startswith("mkfs.") else PROGRAMS[verb](rest))
