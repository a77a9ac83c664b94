"""Run on a node as root: prints which version of the driver is on disk, which one the kernel has loaded, as JSON.

Arguments: VERSION, the wanted one, and KERNELS, the running one and that of the next boot.
{"disk","loaded","restart","unbuilt"}, the first two a version or null. unbuilt: the kernels without the wanted version.
restart: the kernel holds another one than the disk. Where none is loaded, nvidia-smi loads what is on disk, as any user
of a GPU would.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

LOADED = Path("/proc/driver/nvidia/version")


def on_disk(*kernel):
    ask = ["modinfo", *kernel, "-F", "version", "nvidia"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def loaded():
    """`NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.178.04  Release Build ...`"""
    found = re.search(r"Module(?: for \S+)?\s+([\d.]+)", LOADED.read_text()) if LOADED.exists() else None
    return found[1] if found else None


wanted, *kernels = sys.argv[1:]
disk = on_disk()
if disk and not loaded():
    subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False)
unbuilt = [kernel for kernel in kernels if on_disk("-k", kernel) != wanted]
print(json.dumps({"disk": disk, "loaded": loaded(), "restart": loaded() not in (None, disk), "unbuilt": unbuilt}))
