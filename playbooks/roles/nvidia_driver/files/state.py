"""Run on a node as root: prints which version of the driver is on disk, which one the kernel has loaded, as JSON.

{"disk","loaded","restart"}, a version or null each. Where none is loaded, nvidia-smi loads what is on disk, as any user
of a GPU would. restart: the kernel holds another one than the disk.
"""

import json
import re
import subprocess
from pathlib import Path

LOADED = Path("/proc/driver/nvidia/version")


def on_disk():
    answer = subprocess.run(["modinfo", "-F", "version", "nvidia"], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def loaded():
    """`NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.178.04  Release Build ...`"""
    found = re.search(r"Module(?: for \S+)?\s+([\d.]+)", LOADED.read_text()) if LOADED.exists() else None
    return found[1] if found else None


disk = on_disk()
if disk and not loaded():
    subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False)
print(json.dumps({"disk": disk, "loaded": loaded(), "restart": loaded() not in (None, disk)}))
