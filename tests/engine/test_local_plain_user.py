"""A process node needs no rights: made, reached and removed by a user who has none, in a folder with an odd name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.clouds.local.nodes import process

pytestmark = [
    pytest.mark.skipif(bool(process.problems()), reason="; ".join(process.problems())),
    pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as a plain user already"),
]

PLAIN_UID = 54321

# Python is loaded as root, since its folder may be root's alone; the user exists in this mount namespace only.
STORY = """
import encodings.idna, os, subprocess, sys
from pathlib import Path
from infra.clouds.local.nodes import process, site, sweep

os.setgroups([]), os.setgid({uid}), os.setuid({uid}), os.chdir("/")
place = Path(sys.argv[1], "a plain user's 100 % folder", "local", "stack")
spec = site.NodeSpec(
    site=place, name="node-1", address="127.93.7.11", port=2222, public_keys=(), storage={{}}, machine=None
)
process.create(spec)
ssh = ["ssh", "-F", place / "ssh_config", "node-1", "id -u; pwd"]
print(subprocess.run(ssh, capture_output=True, text=True).stdout, end="")
print(process.is_alive(spec))
sweep.remove(place)
print(sweep.left_behind(place))
"""


def test_a_plain_user_makes_reaches_and_removes_a_node(tmp_path: Path) -> None:
    users = tmp_path / "passwd"
    users.write_text(f"{Path('/etc/passwd').read_text()}plain:x:{PLAIN_UID}:{PLAIN_UID}::/:/bin/sh\n")
    folder = Path("/var/tmp", f"gpufleet-{os.getpid()}")
    folder.mkdir()
    os.chown(folder, PLAIN_UID, PLAIN_UID)
    python = [sys.executable, "-c", STORY.format(uid=PLAIN_UID), folder]
    command = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', users, *python]

    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(folder)

    home = f"{folder}/a plain user's 100 % folder/local/stack/nodes/node-1/home"
    assert answer.stdout.splitlines() == [str(PLAIN_UID), home, "True", "[]"], answer.stderr
