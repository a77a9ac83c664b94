"""Checks of a GPU node's software: it is the lock's, everywhere the same, and stays it."""

import json
import re

from node import CheckError, words

LOADED = "/proc/driver/nvidia/version"
DNF_SOURCES = "/etc/yum.repos.d/gpufleet-nvidia.repo"
CONTAINER_SECONDS = 120


def versions(node, expected):
    """The lock's driver is the module on disk, the one loaded, the library, and the fabric manager."""
    lock = locked(node, expected)
    by_place = {"on disk": on_disk(node), "loaded": loaded(node), "library": library(node)}
    if switches(node, expected) != "none":
        by_place["fabric manager"] = fabric_manager(node)
    wrong = [f"{place} {version or 'none'}" for place, version in by_place.items() if version != lock["driver"]]
    if wrong:
        raise CheckError(f"the lock says {lock['driver']}: {', '.join(wrong)}: run gpu_node.yml")
    if ("Open Kernel Module" in node.read(LOADED)) != (lock["flavour"] == "open"):
        raise CheckError(f"the loaded module is not the {lock['flavour']} one: run gpu_node.yml")
    return f"{lock['driver']} {lock['flavour']}: {', '.join(by_place)}"


def kernel(node, expected):
    """The kernel that the next boot takes, the newest one, has the lock's driver too."""
    kernels = [name.removeprefix("vmlinuz-") for name in node.names("/boot") if name.startswith("vmlinuz-")]
    if not kernels:  # a container boots none of its own
        return "none of its own"
    newest, lock = max(kernels, key=natural), locked(node, expected)["driver"]
    built = node.run("modinfo", "-k", newest, "-F", "version", "nvidia", codes=(0, 1)).strip()
    if built != lock:
        raise CheckError(
            f"the next boot takes {newest}, whose driver is {built or 'none'}, not {lock}: run gpu_node.yml"
        )
    return f"{newest} has {built}"


def packages(node, expected):
    """What the lock rules is held, and kept from upgrades that come by themselves, as kernels are."""
    if distribution(node).startswith("rhel"):
        return of_dnf(node, expected)
    listing = node.run("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Abbrev}\n")
    rows = (line.split() for line in listing.splitlines())
    ruled = {row[0]: row[1][0] for row in rows if re.fullmatch("|".join(expected["locked_names"]), row[0])}
    if loose := sorted(name for name, want in ruled.items() if want == "i"):
        raise CheckError(f"{words(loose)} not held: run gpu_node.yml")
    settings = node.run("apt-config", "dump", "Unattended-Upgrade::Package-Blacklist")
    excluded = expected["locked_names"] + expected["kernel_names"]
    if missing := [name for name in excluded if f'"{name}"' not in settings]:
        raise CheckError(f"unattended upgrades may change {words(missing)}: run gpu_node.yml")
    return f"{sum(want == 'h' for want in ruled.values())} held"


def of_dnf(node, expected):
    """With dnf the sources hold it: they leave no other version to take."""
    driver, sources = locked(node, expected)["driver"], node.read(DNF_SOURCES)
    if f"*nvidia*-{driver}-*" not in sources:
        raise CheckError(f"{DNF_SOURCES} leaves dnf other drivers than {driver}: run gpu_node.yml")
    automatic = "automatic.conf" in node.names("/etc/dnf") and node.read("/etc/dnf/automatic.conf")
    if automatic and not re.search(r"^excludepkgs\s*=.*\bkernel\*", automatic, re.MULTILINE):
        raise CheckError("dnf-automatic may install another kernel: run gpu_node.yml")
    return f"{driver} alone is offered"


def containers(node, expected):
    """Containers are given every GPU, with the libraries of the driver that runs."""
    active(node, expected["engine"])
    if "nvidia.yaml" in node.names("/var/run/cdi"):
        raise CheckError("/var/run/cdi/nvidia.yaml counts in place of /etc/cdi/nvidia.yaml: run gpu_node.yml")
    text, version = node.read("/etc/cdi/nvidia.yaml"), locked(node, expected)["driver"]
    if f".so.{version}" not in text:
        raise CheckError(f"/etc/cdi/nvidia.yaml names libraries of another driver than {version}: run gpu_node.yml")
    named = {int(number) for number in re.findall(r"^\s*-?\s*name: ['\"]?(\d+)(?::\d+)?['\"]?$", text, re.MULTILINE)}
    if missing := set(range(expected["gpus"])) - named:
        raise CheckError(f"/etc/cdi/nvidia.yaml does not name GPU {words(sorted(missing))}: run gpu_node.yml")
    if image := expected["image"]:
        seen = node.run(*INSIDE, image, "nvidia-smi", "-L", seconds=CONTAINER_SECONDS).count("GPU ")
        if seen != expected["gpus"]:
            raise CheckError(
                f"a container of {image} sees {seen} of {expected['gpus']} GPUs: look at `nvidia-ctk cdi list`"
            )
    return f"/etc/cdi/nvidia.yaml names {len(named)}" + (f", {image} sees them" if image else "")


# By NVIDIA's runtime, which takes CDI's names whatever Docker knows: its `--device` takes them from 25.0 on, and
# Debian 12 has 20.10 (NVIDIA Container Toolkit, "Using CDI with Non-CDI-Enabled Runtimes"; Docker 25 notes).
NAMED = ("--runtime=nvidia", "--env=NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all")
INSIDE = ("docker", "run", "--rm", "--pull=never", "--network=none", *NAMED)


def locked(node, expected):
    """The lock's versions on this distribution."""
    here = distribution(node)
    if here not in expected["drivers"]:
        raise CheckError(f"no locked driver on {here}")
    return expected["drivers"][here]


def distribution(node):
    """As in NVIDIA's addresses; what is built as RHEL is goes by its name."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', node.read("/etc/os-release"), re.MULTILINE))
    built_as = re.fullmatch(r"platform:el(\d+)", release.get("PLATFORM_ID", ""))
    return f"rhel{built_as[1]}" if built_as else release["ID"] + release["VERSION_ID"].replace(".", "")


def switches(node, expected):
    """How GPUs are joined, as gpu_node.yml found the node: none, nvswitch or nvlink5."""
    return json.loads(node.read(expected["facts"]))["gpus"]["switches"]


def on_disk(node):
    return node.run("modinfo", "-F", "version", "nvidia", codes=(0, 1)).strip()


def loaded(node):
    try:
        text = node.read(LOADED)
    except FileNotFoundError:
        return None
    match = re.search(r"Module(?: for \S+)?\s+([\d.]+)", text)
    return match and match[1]


def library(node):
    for folder in ("/usr/lib64", *(f"/usr/lib/{name}" for name in node.names("/usr/lib"))):
        if "libnvidia-ml.so.1" in node.names(folder):
            return node.resolved(f"{folder}/libnvidia-ml.so.1").partition(".so.")[2]
    return None


def fabric_manager(node):
    match = re.search(r"version is\s*:\s*([\d.]+)", node.run("nv-fabricmanager", "--version"))
    return match and match[1]


def active(node, service):
    state = node.run("systemctl", "is-active", service, codes=range(256)).strip()
    if state != "active":
        raise CheckError(f"{service} is {state}: run gpu_node.yml, then look at `journalctl -u {service}`")


def natural(name):
    """Orders 6.1.9 before 6.1.10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
