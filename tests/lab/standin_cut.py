"""Cuts SSH on a lab machine in the middle of Ansible's N-th task there: killed, not asked. Arguments: N USER.

A task's process is known by the word that Ansible lets sudo say before it (ansible/plugins/become/__init__.py).
"""

import os
import re
import signal
import sys
import time
from pathlib import Path

TASK = re.compile(rb"BECOME-SUCCESS-\w+")
SECONDS = 0.02  # shorter than any task


def processes():
    """Every process with its command line; one that ends meanwhile has none."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), (folder / "cmdline").read_bytes()
        except OSError:
            continue


def cut(number, login):
    seen = set()
    while len(seen) < number:
        time.sleep(SECONDS)
        seen |= {found[0] for _, line in processes() if (found := TASK.search(line))}
    for process, line in processes():
        if line.startswith(login):
            os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    cut(int(sys.argv[1]), f"sshd: {sys.argv[2]}".encode())
