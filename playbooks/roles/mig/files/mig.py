"""Run on a node as root: compares the MIG slices of its GPUs with /etc/gpufleet/mig.json, or makes them so.

look: prints the numbers of the GPUs that are cut otherwise, as JSON. apply: cuts those anew, and no others; what
watches the GPUs steps aside meanwhile, since a GPU changes its mode only while nobody holds it.
Source: NVIDIA Multi-Instance GPU User Guide, "Getting Started with MIG".
"""

import json
import re
import subprocess
import sys
from pathlib import Path

LAYOUT = Path("/etc/gpufleet/mig.json")
WATCHERS = ("nvidia-dcgm-exporter", "nvidia-dcgm")
NOTHING_THERE = 6  # nvidia-smi's exit code where there is no slice to destroy


def smi(*arguments, codes=(0,)):
    answer = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, check=False)
    if answer.returncode not in codes:
        words = (answer.stdout + answer.stderr).strip().splitlines() or ["it ended without a word"]
        sys.exit(f"MIG: `nvidia-smi {' '.join(arguments)}`: {words[-1]}")
    return answer.stdout


def modes():
    """Of each GPU whether it is in MIG mode: the present one, and the one that waits for a reset."""
    rows = smi("--query-gpu=index,mig.mode.current,mig.mode.pending", "--format=csv,noheader").splitlines()
    for index, current, pending in (row.split(", ") for row in rows):
        yield int(index), current == "Enabled", pending == "Enabled"


def slices():
    """Of each GPU the profiles of its slices: `  MIG 3g.20gb     Device  0: (UUID: …)` below its line of `-L`."""
    by_gpu = {}
    for line in smi("-L").splitlines():
        if gpu := re.match(r"GPU (\d+):", line):
            by_gpu[int(gpu[1])] = []
        elif profile := re.match(r"\s+MIG (\S+)\s+Device", line):
            by_gpu[max(by_gpu)].append(profile[1])
    return by_gpu


def astray(layout):
    cut = slices()
    return [
        gpu
        for gpu, on, waiting in modes()
        if (on, waiting) != (bool(layout),) * 2 or sorted(cut[gpu]) != sorted(layout)
    ]


def apply(layout):
    if not (gpus := astray(layout)):
        return
    aside = [name for name in WATCHERS if is_active(name)]
    systemctl("stop", aside)
    try:
        for gpu in gpus:
            cut(gpu, layout)
    finally:
        systemctl("start", aside, "--no-block")  # they are ordered after the unit that we may be


def cut(gpu, layout):
    number = str(gpu)
    smi("mig", "-i", number, "-dci", codes=(0, NOTHING_THERE))
    smi("mig", "-i", number, "-dgi", codes=(0, NOTHING_THERE))
    smi("-i", number, "-mig", "1" if layout else "0")
    if any(on != waiting for index, on, waiting in modes() if index == gpu):
        sys.exit(f"MIG: GPU {gpu} waits for a reset: reboot the node")
    if layout:
        smi("mig", "-i", number, "-cgi", ",".join(layout), "-C")


def is_active(name):
    return subprocess.run(["systemctl", "--quiet", "is-active", name], check=False).returncode == 0


def systemctl(verb, names, *options):
    if names:
        subprocess.run(["systemctl", *options, verb, *names], check=True)


if __name__ == "__main__":
    layout = json.loads(LAYOUT.read_text())
    if sys.argv[1] == "apply":
        apply(layout)
    else:
        print(json.dumps(astray(layout)))
