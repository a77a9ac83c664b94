"""Checks of what every node has, with GPUs or without: its own facts, the environment of jobs, storage."""

import hashlib
import json

from node import CheckError

PYTHON_SECONDS = 60  # an interpreter on a cold shared file system
DISK_MB = 64
VERSIONS = """
import importlib.metadata, platform
print("python", platform.python_version(), "· torch", importlib.metadata.version("torch"))
"""


def facts(node, expected):
    """node.json is whole and speaks of this node."""
    document = json.loads(node.read(expected["facts"]))
    if (document["cluster"]["stack"], document["node"]) != (expected["stack"], expected["node"]):
        raise CheckError(f"{expected['facts']} speaks of another node: run gpu_node.yml")
    return f"{document['node']['name']} of {document['cluster']['stack']}"


def environment(node, expected):
    """The interpreter of jobs runs, as their login and not as root, and torch is installed for it."""
    return node.run(expected["python"], "-c", VERSIONS, seconds=PYTHON_SECONDS, login=expected["login"]).strip()


def package(node, expected):
    """The training package is the one its name says, to the last byte."""
    held = node.resolved(expected["package"])
    manifest = node.read(f"{held}/MANIFEST")
    if not held.endswith(hashlib.sha256(manifest.encode()).hexdigest()[:16]):
        raise CheckError(f"{held} is not what its name says: run gpu_node.yml")
    damaged = node.run("sha256sum", "--check", "--quiet", "--strict", "MANIFEST", folder=held, codes=(0, 1))
    if damaged:
        raise CheckError(f"{held}: {damaged.splitlines()[0]}: run gpu_node.yml")
    return held.rpartition("/")[2]


def storage(node, expected):
    """Shared folders are there and take files."""
    for path in expected["storage"]:
        if not node.takes_files(path):
            raise CheckError(f"{path} is missing or takes no files")
    return ", ".join(expected["storage"]) or "none asked"


def mounts(node, expected):
    """What is to be mounted is: an empty folder in its place takes files too, and fills the root disk. (proc(5))"""
    there = {line.split()[4] for line in node.read("/proc/self/mountinfo").splitlines()}
    if missing := [path for path in expected["mounts"] if path not in there]:
        raise CheckError(f"{', '.join(missing)} not mounted: run gpu_node.yml, then look at `systemctl --failed`")
    return ", ".join(expected["mounts"]) or "none asked"


def disk(node, expected):
    """Folders that jobs write to are as fast as asked. {folder: MB/s}"""
    speeds = {folder: node.write_mb_per_s(folder, DISK_MB) for folder in expected["disks"]}
    for folder, speed in speeds.items():
        if speed < expected["disks"][folder]:
            raise CheckError(
                f"{folder} takes {speed:.0f} MB/s, at least {expected['disks'][folder]} are asked: replace the disk"
            )
    return ", ".join(f"{folder} {speed:.0f} MB/s" for folder, speed in speeds.items()) or "none asked"
