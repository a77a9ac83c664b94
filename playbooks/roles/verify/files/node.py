"""A node as its checks see it: its files and its programs, and nothing else. Tests put a recorded one in its place."""

import os
import pwd
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM_SECONDS = 120  # a sick driver lets whoever asks it hang


class CheckError(Exception):
    """Why a check has failed, and what to do about it."""


class Node:
    """The node that this program runs on."""

    def read(self, file):
        return Path(file).read_text(errors="replace")

    def names(self, folder):
        """What is in a folder; nothing if there is no such folder."""
        return sorted(there.name for there in Path(folder).iterdir()) if Path(folder).is_dir() else []

    def resolved(self, path):
        """Where links lead to. Raises FileNotFoundError."""
        return str(Path(path).resolve(strict=True))

    def takes_files(self, folder):
        return os.access(folder, os.W_OK | os.X_OK)

    def run(self, *command, seconds=PROGRAM_SECONDS, codes=(0,), folder=None, login=None):
        """What a program prints. Raises CheckError for another exit code, with the program's first line.

        login: who runs it, where we are root.
        """
        as_login = {}
        if login and os.geteuid() == 0:
            group = pwd.getpwnam(login).pw_gid
            as_login = {"user": login, "group": group, "extra_groups": os.getgrouplist(login, group), "cwd": "/"}
        answer = subprocess.run(
            command,
            **{"cwd": folder, **as_login},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if answer.returncode not in codes:
            raise CheckError(f"`{' '.join(command[:2])}`: {telling_line(answer.stdout + answer.stderr)}")
        return answer.stdout

    def write_mb_per_s(self, folder, mb):
        """How fast new bytes reach the disk."""
        block, began = os.urandom(1 << 20), time.monotonic()
        with tempfile.TemporaryFile(dir=folder, buffering=0) as out:  # without a name that others could take before us
            for _ in range(mb):
                out.write(block)
            os.fsync(out.fileno())
            return mb * (1 << 20) / 1e6 / (time.monotonic() - began)


def telling_line(text):
    """Programs begin with what is wrong; Python ends with it."""
    lines = text.strip().splitlines() or ["ended without a word"]
    return lines[-1 if lines[0].startswith("Traceback") else 0]


def words(things):
    return ", ".join(map(str, things))
