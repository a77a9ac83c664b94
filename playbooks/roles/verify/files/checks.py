"""Run on a node: checks that it is ready, writes the outcome and prints it.

Outcome: {"ready","checks":[{"name","ok","detail"}],"time"}. Arguments: EXPECTED (a JSON object) READY_FILE
(- for none). Fail-closed: the node is not ready from the start of the checks until all of them have passed.
GPUs are checked where the node is to have some.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

PYTHON_SECONDS = 60  # an interpreter on a cold shared file system
PROGRAM_SECONDS = 120  # a sick driver lets whoever asks it hang
DIAGNOSIS_SECONDS = 300  # DCGM's level 1
LOADED = Path("/proc/driver/nvidia/version")
VERSIONS = """
import importlib.metadata, platform
print("python", platform.python_version(), "· torch", importlib.metadata.version("torch"))
"""


class Fault(Exception):
    """Why a check has failed."""


def facts(expected):
    """node.json is whole and speaks of this node."""
    told = json.loads(Path(expected["facts"]).read_text())
    if (told["cluster"]["stack"], told["node"]) != (expected["stack"], expected["node"]):
        raise Fault(f"{expected['facts']} speaks of another node: run gpu_node.yml")
    return f"{told['node']['name']} of {told['cluster']['stack']}"


def environment(expected):
    """The interpreter of jobs runs, and torch is installed for it."""
    command = [expected["python"], "-c", VERSIONS]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PYTHON_SECONDS, check=False)
    if answer.returncode:
        raise Fault(f"{expected['python']}: {last_line(answer.stderr)}")
    return answer.stdout.strip()


def package(expected):
    """The training package is the one its name says, to the last byte."""
    held = Path(expected["package"]).resolve(strict=True)
    manifest = (held / "MANIFEST").read_bytes()
    if not held.name.endswith(hashlib.sha256(manifest).hexdigest()[:16]):
        raise Fault(f"{held} is not what its name says: run gpu_node.yml")
    check = ["sha256sum", "--check", "--quiet", "--strict", "MANIFEST"]
    answer = subprocess.run(check, cwd=held, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise Fault(f"{held}: {answer.stdout.splitlines()[0]}: run gpu_node.yml")
    return held.name


def storage(expected):
    """Shared folders are there and take files."""
    for path in expected["storage"]:
        if not os.access(path, os.W_OK | os.X_OK):
            raise Fault(f"{path} is missing or takes no files")
    return ", ".join(expected["storage"]) or "none asked"


def versions(expected):
    """The lock's driver is the module on disk, the one loaded, the library, and the fabric manager."""
    lock = locked(expected)
    found = {"on disk": on_disk(), "loaded": loaded(), "library": library()}
    if has_switches(expected):
        found["fabric manager"] = fabric_manager()
    wrong = [f"{place} {version or 'none'}" for place, version in found.items() if version != lock["driver"]]
    if wrong:
        raise Fault(f"the lock says {lock['driver']}: {', '.join(wrong)}: run gpu_node.yml")
    if ("Open Kernel Module" in LOADED.read_text()) != (lock["flavour"] == "open"):
        raise Fault(f"the loaded module is not the {lock['flavour']} one: run gpu_node.yml")
    return f"{lock['driver']} {lock['flavour']}: {', '.join(found)}"


def gpus(expected):
    """Every GPU answers, is of the kind that was asked, and keeps its state."""
    rows = smi("--query-gpu=index,compute_cap,persistence_mode")
    if len(rows) != expected["gpus"]:
        there = {int(row[0]) for row in rows}
        missing = sorted(set(range(expected["gpus"])) - there)
        raise Fault(f"{len(rows)} of {expected['gpus']} GPUs answer, not number {words(missing)}: reboot the node")
    for index, _, persistence in rows:
        if persistence != "Enabled":
            raise Fault(f"GPU {index} has no persistence mode: run gpu_node.yml")
    return f"{len(rows)} of compute capability {rows[0][1]}"


def gpu_memory(expected):
    """No GPU has rows that wait for a reset to be replaced, or errors that it could not correct."""
    for index, errors in smi("--query-gpu=index,ecc.errors.uncorrected.volatile.total"):
        if errors.isdigit() and int(errors) > 0:
            raise Fault(f"GPU {index} has {errors} uncorrected memory errors since its reset: reset it")
    for index, row in enumerate(smi("--query-remapped-rows=remapped_rows.pending,remapped_rows.failure")):
        if row[1] in ("1", "Yes"):
            raise Fault(f"GPU {index} has no spare rows left: replace the node")
        if row[0] in ("1", "Yes"):
            raise Fault(f"GPU {index} waits for a reset to replace rows of its memory: reboot the node")
    return "no uncorrected errors, no rows to remap"


def fabric(expected):
    """The NVLink fabric is complete: until then CUDA answers with error 802."""
    if not has_switches(expected):
        return "no NVSwitch"
    active("nvidia-fabricmanager")
    text = run("nvidia-smi", "-q")
    states = re.findall(r"^    Fabric\n\s+State\s*:\s*(.+)\n\s+Status\s*:\s*(.+)$", text, re.MULTILINE)
    told = [state for state in states if state[0] != "N/A"]  # before Hopper a GPU has no word for it
    for index, (state, status) in enumerate(told):
        if (state, status) != ("Completed", "Success"):
            raise Fault(f"GPU {index} says {state}, {status}: look at `journalctl -u nvidia-fabricmanager`")
    return "completed on every GPU" if told else "the fabric manager runs"


def packages(expected):
    """What the lock rules is held, and kept from unattended upgrades."""
    listing = run("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Abbrev}\n")
    rows = (line.split() for line in listing.splitlines())
    ruled = {row[0]: row[1][0] for row in rows if re.fullmatch("|".join(expected["locked_names"]), row[0])}
    if loose := sorted(name for name, want in ruled.items() if want == "i"):
        raise Fault(f"{words(loose)} not held: run gpu_node.yml")
    settings = run("apt-config", "dump", "Unattended-Upgrade::Package-Blacklist")
    if missing := [name for name in expected["locked_names"] if f'"{name}"' not in settings]:
        raise Fault(f"unattended upgrades may change {words(missing)}: run gpu_node.yml")
    return f"{sum(want == 'h' for want in ruled.values())} held"


def dcgm(expected):
    """DCGM is the locked one, and its short test passes on every GPU."""
    active("nvidia-dcgm")
    active("nvidia-dcgm-exporter")
    found, lock = re.search(r"ersion\s*:\s*([\d.]+)", run("dcgmi", "--version")), locked(expected)["dcgm"]
    if not found or found[1] != lock:
        raise Fault(f"dcgmi is {found[1] if found else 'unknown'}, the lock says {lock}: run gpu_node.yml")
    told = json.loads(run("dcgmi", "diag", "-r", "1", "-j", seconds=DIAGNOSIS_SECONDS, codes=range(256)))
    for test in (test for group in told["DCGM Diagnostic"]["test_categories"] for test in group["tests"]):
        for result in test["results"]:
            if result["status"] == "Fail":
                why = "; ".join(warning["warning"] for warning in result.get("warnings", [])) or "no reason given"
                raise Fault(f"{test['name']} on {result['entity_group']} {result['entity_id']}: {why}")
    return f"{lock}, level 1 passed"


def containers(expected):
    """Containers are given every GPU, with the libraries of the driver that runs."""
    active("docker")
    text = Path("/etc/cdi/nvidia.yaml").read_text()
    version = locked(expected)["driver"]
    if f".so.{version}" not in text:
        raise Fault(f"/etc/cdi/nvidia.yaml names libraries of another driver than {version}: run gpu_node.yml")
    return "/etc/cdi/nvidia.yaml"


def locked(expected):
    """The lock's versions on this distribution."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))
    distribution = release["ID"] + release["VERSION_ID"].replace(".", "")
    if distribution not in expected["drivers"]:
        raise Fault(f"no locked driver on {distribution}")
    return expected["drivers"][distribution]


def has_switches(expected):
    """Whether GPUs are joined by NVSwitches, as gpu_node.yml found the node."""
    return json.loads(Path(expected["facts"]).read_text())["gpus"]["switches"] != "none"


def on_disk():
    answer = subprocess.run(["modinfo", "-F", "version", "nvidia"], capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def loaded():
    found = re.search(r"Module(?: for \S+)?\s+([\d.]+)", LOADED.read_text()) if LOADED.exists() else None
    return found and found[1]


def library():
    for link in Path("/usr/lib").glob("*/libnvidia-ml.so.1"):
        return link.resolve().name.partition(".so.")[2]
    return None


def fabric_manager():
    found = re.search(r"version is\s*:\s*([\d.]+)", run("nv-fabricmanager", "--version"))
    return found and found[1]


def active(service):
    state = run("systemctl", "is-active", service, codes=range(256)).strip()
    if state != "active":
        raise Fault(f"{service} is {state}: run gpu_node.yml, then look at `journalctl -u {service}`")


def smi(query):
    """The rows of a query of nvidia-smi."""
    text = run("nvidia-smi", query, "--format=csv,noheader,nounits")
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]


def run(*command, seconds=PROGRAM_SECONDS, codes=(0,)):
    answer = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    if answer.returncode not in codes:
        raise Fault(f"`{' '.join(command[:2])}`: {first_line(answer.stdout + answer.stderr)}")
    return answer.stdout


def words(things):
    return ", ".join(map(str, things))


def first_line(text):
    return next(iter(text.strip().splitlines()), "ended without a word")


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "ended without a word"


def outcome(check, expected):
    """One check's result. Whatever hinders a check is a reason why the node is not ready."""
    try:
        return {"name": check.__name__, "ok": True, "detail": check(expected)}
    except Fault as fault:
        reason = str(fault)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        reason = f"{type(error).__name__}: {error}"
    return {"name": check.__name__, "ok": False, "detail": reason}


def write(file, report):
    """Puts the report in place whole; `-` is no file."""
    if file == "-":
        return
    fresh = Path(file).with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps(report) + "\n")
    fresh.replace(file)


EVERYWHERE = (facts, environment, package, storage)
WITH_GPUS = (versions, gpus, gpu_memory, fabric, packages, dcgm, containers)


def main(expected, file):
    unfinished = {"name": "checks", "ok": False, "detail": "the checks have not finished"}
    write(file, {"ready": False, "checks": [unfinished], "time": now()})
    checks = [outcome(check, expected) for check in (*EVERYWHERE, *(WITH_GPUS if expected["gpus"] else ()))]
    report = {"ready": all(check["ok"] for check in checks), "checks": checks, "time": now()}
    write(file, report)
    print(json.dumps(report))


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
