"""Run on a node as root: makes the file systems of /etc/gpufleet/disks.json from the node's own disks, and mounts them.

look: prints {"lacking","programs"}: the mounts that are not there, and the programs that are missing, of all that
making any of them needs: the next boot may make it anew. make: makes those that are not there. A disk that holds
anything is taken as it is, or refused: it is never formatted.
Encrypted disks are opened with a key that the node makes for itself and keeps where only root reads it: it protects
disks that leave the machine, not a machine that is stolen whole.
Sources: mdadm(8), cryptsetup-luksFormat(8), blkid(8); EC2 User Guide, "RAID configuration on Linux".
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

WANTED = Path("/etc/gpufleet/disks.json")
KEYS = Path("/etc/gpufleet/keys")
KEY_BYTES = 64
BLOCKS = Path("/sys/class/block")
ARRAYS, OPENED = Path("/dev/md"), Path("/dev/mapper")
NOTHING_FOUND = 2  # blkid's exit code for a disk without any signature
OF_ITSELF = ("DEVNAME=", "PART_ENTRY_")  # what blkid says of a device, not of what is on it


def members(each):
    """The disks that a file system is made of."""
    devices = [Path(device) for device in each["devices"]] or list(of_model(each["model"]))
    if lost := [str(device) for device in devices if not device.exists()]:
        sys.exit(f"{each['name']}: {', '.join(lost)} is missing: look at `lsblk`")
    if len(devices) != each["count"]:
        sys.exit(f"{each['name']}: {len(devices)} disks, the stack asks {each['count']}: replace the node")
    return devices


def of_model(model):
    for disk in sorted(Path("/sys/block").iterdir()):
        name = disk / "device/model"
        if name.exists() and name.read_text().strip() == model:
            yield Path("/dev", disk.name)


def holds(device):
    """What is on a disk, such as xfs, linux_raid_member or partitions; empty for nothing. Contradictions end it all."""
    answer = run("blkid", "--probe", "--output", "export", device, codes=(0, NOTHING_FOUND))
    fields = dict(line.split("=", 1) for line in answer.splitlines() if not line.startswith(OF_ITSELF))
    if "PTTYPE" in fields:
        fields.setdefault("TYPE", f"a {fields['PTTYPE']} partition table")
    parts = sorted(file.parent.name for file in (BLOCKS / device.resolve().name).glob("*/partition"))
    return fields.get("TYPE") or ", ".join([*fields, *parts])


def striped(each, disks):
    array = ARRAYS / each["name"]
    if array.exists():
        return array
    if all(holds(disk) == "linux_raid_member" for disk in disks):
        run("mdadm", "--assemble", array, *disks)
        return array
    for disk in disks:
        require(each, disk, "")
    stripe = [f"--chunk={each['chunk_kib']}"] if each["chunk_kib"] else []
    level = [f"--level={each['raid_level']}", f"--raid-devices={len(disks)}", *stripe]
    run("mdadm", "--create", array, "--run", "--homehost=any", f"--name={each['name']}", *level, *disks)
    return array


def opened(each, device):
    plain = OPENED / each["name"]
    if plain.exists():
        return plain
    key = KEYS / each["name"]
    if holds(device) != "crypto_LUKS":
        require(each, device, "")
        if not key.exists():
            write_key(key)
        run("cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", f"--key-file={key}", device)
    run("cryptsetup", "open", f"--key-file={key}", device, each["name"])
    return plain


def write_key(key):
    KEYS.mkdir(mode=0o700, exist_ok=True)
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
        file.write(os.urandom(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())


def require(each, device, kind):
    if (there := holds(device)) != kind:
        sys.exit(f"{each['name']}: {device} holds {there}: look at it, and free it with `wipefs --all {device}`")


def make(each):
    disks = members(each)
    device = disks[0] if each["raid_level"] is None else striped(each, disks)
    device = opened(each, device) if each["encrypted"] else device
    if not holds(device):
        run(f"mkfs.{each['file_system']}", "-L", each["name"], device)
    require(each, device, each["file_system"])
    Path(each["mount"]).mkdir(parents=True, exist_ok=True)
    run("mount", "-o", "noatime,nosuid,nodev", device, each["mount"])
    Path(each["mount"]).chmod(0o1777)


def run(*command, codes=(0,)):
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if answer.returncode not in codes:
        words = (answer.stdout + answer.stderr).strip().splitlines() or ["it ended without a word"]
        sys.exit(f"`{' '.join(map(str, command))}`: {words[-1]}")
    return answer.stdout


def programs(config):
    for each in config:
        yield f"mkfs.{each['file_system']}"
        yield from ["mdadm"] if each["raid_level"] is not None else []
        yield from ["cryptsetup"] if each["encrypted"] else []


def mounted():
    """Every mount point: the fifth word of each line (proc(5))."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def main(verb):
    config = json.loads(WANTED.read_text())
    lacking = [each for each in config if each["mount"] not in mounted()]
    if verb == "make":
        for each in lacking:
            make(each)
        return
    missing = sorted({name for name in programs(config) if not shutil.which(name)})
    print(json.dumps({"lacking": [each["mount"] for each in lacking], "programs": missing}))


if __name__ == "__main__":
    main(sys.argv[1])
