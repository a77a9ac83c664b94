"""Run on a node as root: prints what there is of GPUs, without any package and without loading a driver, as JSON.

{"gpus","switches","secure_boot","busy","sliced","next_kernel"}. switches: "none", "nvswitch" (a PCI device of its own)
or "nvlink5" (seen only as an InfiniBand card whose vital product data says SW_MNG). busy: the processes that compute on
a GPU; where the driver is loaded and nvidia-smi fails, as after an upgrade beneath a job, those that have a GPU open.
sliced: whether any GPU is cut by MIG. next_kernel: the newest, which the next boot takes; empty in a container, which
boots none.
Sources: PCI class codes of displays; device ids 1af1 (A100) and 22a3 (H100), NVIDIA/gpu-driver-container.
"""

import json
import re
import subprocess
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
DAEMONS = ("nvidia-persistenced", "nv-hostengine", "dcgm-exporter", "nv-fabricmanager")  # they compute nothing
COMM_CHARACTERS = 15  # of a program's name that the kernel keeps (proc(5))
NVIDIA, DISPLAYS, BRIDGE = "0x10de", ("0x0300", "0x0302"), "0x0680"
SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"  # the variable's last byte is 1 where it is on


def nvidia_classes():
    """The PCI class of every NVIDIA device."""
    for device in Path("/sys/bus/pci/devices").iterdir():
        if (device / "vendor").read_text().strip() == NVIDIA:
            yield (device / "class").read_text().strip()[:6]


def has_nvlink5():
    cards = Path("/sys/class/infiniband").glob("*/device/vpd")
    return any(b"SW_MNG" in card.read_bytes() for card in cards)


def secure_boot():
    variable = Path("/sys/firmware/efi/efivars", SECURE_BOOT)
    return variable.exists() and variable.read_bytes()[-1] == 1


def smi(query):
    """The answer of nvidia-smi; none if it fails, as before there is a driver."""
    ask = ["nvidia-smi", query, "--format=csv,noheader"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=30, check=False)
    except FileNotFoundError:
        return None
    return answer.stdout if answer.returncode == 0 else None


def busy():
    output = smi("--query-compute-apps=pid")
    if output is None:
        return sorted(holders()) if (PROC / "driver/nvidia/version").exists() else []
    return sorted({int(pid) for pid in output.split() if pid.isdigit()})


def holders():
    """The processes that have a GPU open, without the stack's own daemons."""
    for process in PROC.glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            if (process / "comm").read_text().strip() not in [name[:COMM_CHARACTERS] for name in DAEMONS]:
                yield from {int(process.name) for file in (process / "fd").iterdir() if opens_gpu(file)}


def opens_gpu(file):
    with suppress(FileNotFoundError, ProcessLookupError):  # it was closed meanwhile
        return re.match(r"/dev/nvidia\d", str(file.readlink()))


def next_kernel():
    kernels = [image.name.removeprefix("vmlinuz-") for image in Path("/boot").glob("vmlinuz-*")]
    return max(kernels, key=natural, default="")


def natural(name):
    """Orders 6.1.9 before 6.1.10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def main():
    classes = list(nvidia_classes())
    print(
        json.dumps(
            {
                "gpus": sum(kind in DISPLAYS for kind in classes),
                "switches": "nvswitch" if BRIDGE in classes else "nvlink5" if has_nvlink5() else "none",
                "secure_boot": secure_boot(),
                "busy": busy(),
                "sliced": "Enabled" in (smi("--query-gpu=mig.mode.current") or "").split(),
                "next_kernel": next_kernel(),
            }
        )
    )


if __name__ == "__main__":
    main()
