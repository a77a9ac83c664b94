"""Run on a node as root: takes back its word that it is ready, asks what computes on its GPUs to stop, and waits.

A module beside gpu_facts' `probe_gpus`, which knows who is busy. SIGTERM is the notice that jobs of ours answer with a
checkpoint and exit code 75. Prints the processes that left; exits 1 with those that did not. Nobody is killed.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import probe_gpus


def take_back(file):
    if file.parent.is_dir():
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        check = {"name": "drained", "ok": False, "detail": "it was drained: verify.yml takes it back"}
        fresh = file.with_suffix(".new")
        fresh.unlink(missing_ok=True)  # whatever it leads to
        with fresh.open("x") as out:
            out.write(json.dumps({"ready": False, "checks": [check], "time": now}) + "\n")
        fresh.replace(file)


def main(file, seconds):
    """file: the node's word on its readiness. seconds: how long jobs have for it."""
    take_back(Path(file))
    signalled, until = set(), time.monotonic() + seconds
    while there := set(probe_gpus.busy()):
        for pid in there - signalled:
            with suppress(ProcessLookupError):  # it left by itself
                os.kill(pid, signal.SIGTERM)
        signalled |= there
        if time.monotonic() > until:
            left = ", ".join(map(str, sorted(there)))
            sys.exit(f"process {left} still computes on a GPU after {seconds} s: stop its job, then run it again")
        time.sleep(1)
    print("\n".join(map(str, sorted(signalled))))
