"""Run on a node as root: prints which version of the driver is on disk, which one the kernel has loaded, as JSON.

Arguments: look | load, VERSION and FLAVOUR, the wanted ones, and KERNELS, the running one and that of the next boot.
{"disk","loaded","restart","unbuilt"}, the first two a version or null. unbuilt: the kernels without the wanted version.
restart: why the kernel must start anew to run what is on disk, as it is told to; empty where it does. load: where none
is loaded, nvidia-smi loads what is on disk, as any user of a GPU would.
The kernel shows no options that were left out since, so those that the module was loaded with are kept for the boot:
`look` comes before they are written anew.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

LOADED = Path("/proc/driver/nvidia/version")
NOUVEAU = Path("/sys/bus/pci/drivers/nouveau")  # has a link to each device that it drives
OPTIONS, LOADED_WITH = Path("/etc/modprobe.d/gpufleet-nvidia.conf"), Path("/run/gpufleet-nvidia.conf")


def on_disk(*kernel):
    ask = ["modinfo", *kernel, "-F", "version", "nvidia"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def loaded():
    """`NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.178.04  Release Build ...`"""
    match = re.search(r"Module(?: for \S+)?\s+([\d.]+)", LOADED.read_text()) if LOADED.exists() else None
    return match[1] if match else None


def options(file):
    lines = file.read_text().splitlines() if file.exists() else []
    return [line for line in lines if line.startswith("options ")]


def restart(disk, flavour):
    if not disk:
        return ""
    if not loaded():
        return "nouveau drives the GPUs" if list(NOUVEAU.glob("*:*")) else ""
    if loaded() != disk:
        return f"{loaded()} is loaded and {disk} installed"
    if ("Open Kernel Module" in LOADED.read_text()) != (flavour == "open"):
        return f"another flavour than {flavour} is loaded"
    return "its options are others than it was loaded with" if options(OPTIONS) != options(LOADED_WITH) else ""


purpose, locked_version, flavour, *kernels = sys.argv[1:]
disk = on_disk()
if purpose == "load" and disk and not loaded():
    subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False)
if loaded() and not LOADED_WITH.exists():
    LOADED_WITH.write_text("".join(f"{line}\n" for line in options(OPTIONS)))
unbuilt = [kernel for kernel in kernels if on_disk("-k", kernel) != locked_version]
print(json.dumps({"disk": disk, "loaded": loaded(), "restart": restart(disk, flavour), "unbuilt": unbuilt}))
