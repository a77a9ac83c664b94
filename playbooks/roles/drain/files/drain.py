"""Run on a node as root: takes back its word that it is ready, asks what computes on its GPUs to stop, and waits.

Arguments: READY_FILE SECONDS. SIGTERM is the notice that jobs of ours answer with a checkpoint and exit code 75. Prints
the processes that left; exits 1 with those that did not. Nobody is killed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ASK = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]


def busy():
    try:
        answer = subprocess.run(ASK, capture_output=True, text=True, timeout=30, check=False)
    except FileNotFoundError:  # no driver, no jobs on GPUs
        return set()
    return {int(pid) for pid in answer.stdout.split() if pid.isdigit()} if answer.returncode == 0 else set()


def take_back(file):
    if file.parent.is_dir():
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        check = {"name": "drained", "ok": False, "detail": "it was drained: verify.yml takes it back"}
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({"ready": False, "checks": [check], "time": now}) + "\n")
        fresh.replace(file)


def main(file, seconds):
    take_back(file)
    asked, until = set(), time.monotonic() + seconds
    while there := busy():
        for pid in there - asked:
            with suppress(ProcessLookupError):  # it left by itself
                os.kill(pid, signal.SIGTERM)
        asked |= there
        if time.monotonic() > until:
            left = ", ".join(map(str, sorted(there)))
            sys.exit(f"process {left} still computes on a GPU after {seconds} s: stop its job, then run it again")
        time.sleep(1)
    print("\n".join(map(str, sorted(asked))))


main(Path(sys.argv[1]), int(sys.argv[2]))
