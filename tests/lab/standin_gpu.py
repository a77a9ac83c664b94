"""The GPUs of a lab machine: what stands in for nvidia-smi, modinfo, dkms, dcgmi and the fabric manager there.

Runs inside the machine with its own Python. What hardware there is says /var/lib/standin/gpu.json, such as
{"model": "a100", "count": 8, "cards": ["rdmap0s31"], "faults": ["lost:3"]}; a test edits that file. Which versions
are installed say the files that the stand-in packages bring. Texts and exit codes are those of the real programs, as
people's reports show them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import standin_mig

STATE, RUN = Path("/var/lib/standin"), Path("/run/standin")
SHARE = Path("/usr/share/standin")
PROC = Path("/proc/driver")
# What changes while the machine runs stands beside what is grafted, whose files must not come and go.
CARRIED, LOADED_MLX5 = RUN / "carried", RUN / "mlx5_core"
CARD_DRIVERS = {"rdmap": "efa", "erdma": "erdma", "mlx5": "mlx5_core"}  # by what their cards are called
# PCI id, name, compute capability, module flavours that bind, kind of NVSwitch, whether `-q` tells of a fabric
MODELS = {
    "v100": ("1db5", "Tesla V100-SXM2-32GB", "7.0", ("proprietary",), None, False),
    "t4": ("1eb8", "Tesla T4", "7.5", ("open", "proprietary"), None, False),
    "a10": ("2236", "NVIDIA A10", "8.6", ("open", "proprietary"), None, False),
    "a100": ("20b2", "NVIDIA A100-SXM4-80GB", "8.0", ("open", "proprietary"), "1af1", False),
    "h100": ("2330", "NVIDIA H100 80GB HBM3", "9.0", ("open", "proprietary"), "22a3", True),
    "b200": ("2901", "NVIDIA B200", "10.0", ("open",), "nvlink5", True),
    "b300": ("3182", "NVIDIA B300 SXM6 AC", "10.3", ("open",), "nvlink5", True),
}


def state():
    told = json.loads((STATE / "gpu.json").read_text())
    keys = ("id", "name", "capability", "flavours", "switch", "fabric")
    return {"faults": [], "cards": [], **told, **dict(zip(keys, MODELS[told["model"]], strict=True))}


def installed(what):
    """module, fabricmanager or dcgm: what its package says, as words."""
    file = SHARE / what
    return file.read_text().split() if file.exists() else []


def library():
    found = Path("/usr").glob("lib*/**/libnvidia-ml.so.*.*")
    return next((file.name.partition(".so.")[2] for file in found), None)


def loaded():
    file = RUN / "loaded"
    return file.read_text().split() if file.exists() else None


def hardware():
    """At boot: the devices appear in /sys, and the module that was built is loaded."""
    there = state()
    (RUN / "pci").mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", PROC], check=True)
    devices = [(f"0000:{0x10 + i:02x}:00.0", there["id"], "0x030200") for i in range(there["count"])]
    if there["switch"] not in (None, "nvlink5"):
        devices += [(f"0000:{0xC0 + i:02x}:00.0", there["switch"], "0x068000") for i in range(4)]
    for slot, device, kind in devices:
        for name, text in (("vendor", "0x10de"), ("device", f"0x{device}"), ("class", kind)):
            write(RUN / "pci" / slot / name, text + "\n")
    graft(RUN / "pci", "/sys/bus/pci/devices")
    for card in there["cards"]:
        place = RUN / "class/infiniband" / card
        write(place / "ports/1/state", "4: ACTIVE\n")
        for way in ("xmit", "rcv"):
            counter = place / f"ports/1/counters/port_{way}_data"
            counter.parent.mkdir(exist_ok=True)
            counter.symlink_to(CARRIED / way)
        driver = RUN / "drivers" / next(name for prefix, name in CARD_DRIVERS.items() if card.startswith(prefix))
        driver.mkdir(parents=True, exist_ok=True)
        (place / "device").mkdir(exist_ok=True)
        (place / "device/driver").symlink_to(driver)
    for way in ("xmit", "rcv") if there["cards"] else ():
        write(CARRIED / way, "0\n")
    if any(card.startswith("mlx5") for card in there["cards"]):
        subprocess.run(["mount", "-o", "remount,rw", "/sys"], check=True)  # a machine's is in memory, without modules
        Path("/sys/module/mlx5_core").mkdir(parents=True)
        Path("/sys/module/mlx5_core/version").symlink_to(LOADED_MLX5)
    if there["switch"] == "nvlink5":
        write(RUN / "class/infiniband/mlx5_0/device/vpd", "ConnectX-7 SW_MNG\n")
    if (RUN / "class").exists():
        graft(RUN / "class", "/sys/class")
    load()


def load():
    """What modprobe does: takes the module built for this kernel, unless one is loaded already."""
    built = built_module()
    if os.geteuid() or not built or loaded():
        return
    version, flavour = built
    write(RUN / "loaded", f"{version} {flavour}\n")
    kind = "Open Kernel Module for x86_64" if flavour == "open" else "x86_64 Kernel Module"
    write(PROC / "nvidia/version", f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build\n")


def built_module(kernel=None):
    file = STATE / "dkms"
    rows = map(str.split, lines(file))
    return {name: module for name, *module in rows}.get(kernel or os.uname().release)


def dkms(arguments):
    """`autoinstall` builds for a kernel, the running one if none is named, if its headers are there."""
    kernel = arguments[2] if arguments[1:2] == ["-k"] else os.uname().release
    module, headers = installed("module"), Path(f"/usr/src/linux-headers-{kernel}").is_dir()
    if arguments[:1] == ["autoinstall"] and module and headers:
        others = [line for line in lines(STATE / "dkms") if not line.startswith(f"{kernel} ")]
        write(STATE / "dkms", "".join(f"{line}\n" for line in [*others, " ".join([kernel, *module])]))
    elif arguments[:1] == ["status"] and module:
        print(f"nvidia/{module[0]}" + (f", {os.uname().release}, x86_64: installed" if built_module() else ": added"))
    return 0


def lines(file):
    return file.read_text().splitlines() if file.exists() else []


def modinfo(arguments):
    if arguments[-1] == "mlx5_core":  # the kernel's own has no version
        print(*installed("mlx5_core"))
        return 0
    built = built_module(arguments[1] if arguments[0] == "-k" else None)
    if not built or arguments[-1] != "nvidia":
        print(f"modinfo: ERROR: Module {arguments[-1]} not found.", file=sys.stderr)
        return 1
    print(built[0])
    return 0


def openibd(arguments):
    """Loads the driver of the cards that is on disk in place of the one that the kernel has."""
    write(LOADED_MLX5, f"{installed('mlx5_core')[0]}\n")
    return 0


def bound():
    """The GPUs that the loaded module drives, or nvidia-smi's exit code and words."""
    load()
    there, module = state(), loaded()
    if not module:
        words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        return None, 9, words + "Make sure that the latest NVIDIA driver is installed and running."
    if module[0] != library():
        short = ".".join((library() or "").split(".")[:2])
        return None, 18, f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {short}"
    if module[1] not in there["flavours"]:
        return None, 6, "No devices were found"
    lost = {int(fault.partition(":")[2]) for fault in there["faults"] if fault.startswith("lost:")}
    return [i for i in range(there["count"]) if i not in lost], 0, ""


def nvidia_smi(arguments):
    gpus, code, words = bound()
    if gpus is None:
        print(words)
        return code
    there, (option, _, asked) = state(), (arguments or [""])[0].partition("=")
    if "mig" in arguments or "-mig" in arguments:
        return standin_mig.nvidia_smi(arguments, there)
    if option == "--query-compute-apps":
        print("\n".join(str(pid) for pid in there.get("computing", []) if Path(f"/proc/{pid}").exists()))
    elif option in ("--query-gpu", "--query-remapped-rows"):
        for i in gpus:
            print(", ".join(figure(there, i, name) for name in asked.split(",")))
    elif option == "-q":
        fabric(there, gpus)
    elif option in ("--lock-gpu-clocks", "--reset-gpu-clocks"):
        write(RUN / "clocks", f"{asked}\n")
    elif option == "-L":
        for i in gpus:
            print(f"GPU {i}: {there['name']} (UUID: GPU-{i:08d})")
            print(standin_mig.listed(i), end="")
    return 0


def fabric(there, gpus):
    done = (RUN / "fabric").exists() and "no-fabric" not in there["faults"]
    told = ("Completed", "Success") if done else ("In Progress", "N/A")
    told = told if there["fabric"] else ("N/A", "N/A")
    for i in gpus:
        print(f"GPU 00000000:{0x10 + i:02X}:00.0")
        print("    Fabric\n        {:<34}: {}\n        {:<34}: {}".format("State", told[0], "Status", told[1]))


def figure(there, gpu, name):
    """One cell of a query. A fault such as `remapped_rows.pending:2` gives GPU 2 the figure Yes or 1."""
    broken = f"{name}:{gpu}" in there["faults"]
    if name.startswith("remapped_rows"):
        return str(int(broken)) if float(there["capability"]) >= 8 else "[N/A]"
    return {
        "index": str(gpu),
        "name": there["name"],
        "compute_cap": there["capability"],
        "mig.mode.current": standin_mig.mode(there, gpu),
        "mig.mode.pending": standin_mig.mode(there, gpu),
        "persistence_mode": "Disabled" if broken else "Enabled",
        "ecc.mode.current": "Disabled" if broken else "Enabled",
        "pcie.link.width.current": "4" if broken else "16",
        "clocks_event_reasons.hw_thermal_slowdown": "Active" if broken else "Not Active",
        "clocks_event_reasons.hw_power_brake_slowdown": "Active" if broken else "Not Active",
        "ecc.errors.uncorrected.volatile.total": "3" if broken else "0",
    }.get(name, "[N/A]")


def fabricmanager(arguments):
    mine = installed("fabricmanager")[0]
    if arguments[:1] == ["--version"]:
        print(f"Fabric Manager version is : {mine}")
        return 0
    load()
    there, module = state(), loaded() or ["none"]
    if there["switch"] is None:
        print("NV_WARN_NOTHING_TO_DO: no NVSwitch", file=sys.stderr)
        return 1
    if module[0] != mine:
        words = f"fabric manager NVIDIA GPU driver interface version {mine} don't match with driver version {module[0]}"
        print(words, file=sys.stderr)
        return 1
    if there["switch"] == "nvlink5" and not (Path("/usr/bin/nvlsm").exists() and loads_at_boot("ib_umad")):
        print("the subnet manager does not run: the NVLink fabric cannot be formed", file=sys.stderr)
        return 1
    if arguments[:1] == ["--check"]:
        return 0
    (RUN / "fabric").touch()
    return subprocess.run(["sleep", "infinity"], check=False).returncode


def loads_at_boot(module):
    return any(module in file.read_text().split() for file in Path("/etc/modules-load.d").glob("*.conf"))


def dcgmi(arguments):
    version = installed("dcgm")[0]
    if arguments[:1] != ["diag"]:
        print(f"Version : {version}\nBuild ID : 1")
        return 0
    gpus, code, _ = bound()
    faults, driver = state()["faults"], (loaded() or ["none"])[0]
    bad = [i for i in gpus or [] if f"dcgm:{i}" in faults or f"bad-driver:{driver}" in faults]
    results = [result(i, i in bad) for i in gpus or []]
    test = {"name": "software", "results": results, "test_summary": {"status": "Fail" if bad or code else "Pass"}}
    category = {"category": "Deployment", "tests": [test]}
    print(json.dumps({"DCGM Diagnostic": {"test_categories": [category]}, "metadata": {"version": version}}))
    return 226 if bad or code else 0


def result(gpu, bad):
    warning = {"warning": "Detected page retirement failure", "error_id": 28, "error_category": 1, "error_severity": 2}
    entity = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu}
    return {**entity, "status": "Fail", "warnings": [warning]} if bad else {**entity, "status": "Pass"}


def nvidia_ctk(arguments):
    if arguments[:2] == ["cdi", "generate"]:
        gpus, code, words = bound()
        if gpus is None:
            print(words, file=sys.stderr)
            return code
        devices = "".join(f"\n  - name: '{name}'" for i in gpus for name in standin_mig.named(i))
        text = f"cdiVersion: 0.7.0\nkind: nvidia.com/gpu\ndevices:{devices}\ncontainerEdits:\n  mounts:\n"
        text += f"  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{library()}\n"
        if place := os.environ.get("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"):
            write(Path(place), text)
        else:
            print(text, end="")
    return 0


def graft(extra, onto):
    layers = f"lowerdir={extra}:{onto}"
    subprocess.run(["mount", "-t", "overlay", "standin", "-o", layers, onto], check=True)


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


PROGRAMS = {
    "dcgmi": dcgmi,
    "dkms": dkms,
    "fabricmanager": fabricmanager,
    "modinfo": modinfo,
    "nvidia-ctk": nvidia_ctk,
    "nvidia-smi": nvidia_smi,
    "openibd": openibd,
}

if __name__ == "__main__":
    sys.exit(hardware() if sys.argv[1] == "hardware" else PROGRAMS[sys.argv[1]](sys.argv[2:]))
