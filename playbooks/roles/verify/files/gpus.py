"""Checks of the GPUs themselves, and of what joins them. Field names are those of `nvidia-smi --help-query-gpu`.

Limits on remapped rows: Azure's node health checks (AzHPC, 2026-05). What an Xid asks for: NVIDIA's Xid catalogue of
2025-10 and the health checks of AWS and Azure, 2026; where they differ the more careful one is taken.
"""

import collections
import json
import re

from driver import active, locked, switches
from node import CheckError, words

DIAGNOSIS_SECONDS = 300  # DCGM's level 1
REMAPPED_ROWS_MOST = 512
SLOWDOWNS = {"hw_thermal_slowdown": "heat", "hw_power_brake_slowdown": "its power supply"}
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\).*?: (\d+),(.*)")
OFF_THE_BUS = re.compile(r"NVRM: GPU ([0-9a-fA-F:.]+): GPU has fallen off the bus")
REBOOT = {46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158, 168, 171, 172}
REPLACE = {54, 81, 142}
SAYS_ITSELF = 154  # its text names the action


def gpus(node, expected):
    """Every GPU answers, all are of one kind and with as many lanes, and they keep their state."""
    rows = smi(node, "index,name,compute_cap,persistence_mode,pcie.link.width.current")
    if len(rows) != expected["gpus"]:
        missing = sorted(set(range(expected["gpus"])) - {int(row[0]) for row in rows})
        raise CheckError(f"{len(rows)} of {expected['gpus']} GPUs answer, not number {words(missing)}: reboot the node")
    for index, _, _, persistence, _ in rows:
        if persistence != "Enabled":
            raise CheckError(f"GPU {index} has no persistence mode: run gpu_node.yml")
    alike(rows, 1, "is a {}, the others are {}: replace the node")
    alike(rows, 4, "has {} PCIe lanes, the others {}: replace the node")
    return f"{len(rows)} of compute capability {rows[0][2]}"


def slices(node, expected):
    """Every GPU is cut by MIG as the stack asks, or not at all: `  MIG 3g.20gb     Device  0: …` below its own line."""
    for text in re.split(r"^GPU (?=\d+:)", node.run("nvidia-smi", "-L"), flags=re.MULTILINE)[1:]:
        present = re.findall(r"^\s+MIG (\S+)\s+Device", text, re.MULTILINE)
        if sorted(present) != sorted(expected["mig"]):
            gpu, there, configured = text.partition(":")[0], words(present) or "none", words(expected["mig"]) or "none"
            raise CheckError(f"GPU {gpu} has slices {there}, not {configured}: run gpu_node.yml")
    return words(expected["mig"]) or "none asked"


def alike(rows, column, fault):
    """One figure that differs from the other GPUs'. A cloud may give all of them less than the card could take."""
    (usual, _), *others = collections.Counter(row[column] for row in rows).most_common()
    if others:
        odd = next(row for row in rows if row[column] != usual)
        raise CheckError(f"GPU {odd[0]} " + fault.format(odd[column], usual))


def gpu_memory(node, expected):
    """Errors are corrected, and no GPU has had one that could not be, or rows that wait for a reset to be replaced."""
    for index, mode, errors in smi(node, "index,ecc.mode.current,ecc.errors.uncorrected.volatile.total"):
        if mode == "Disabled":
            raise CheckError(
                f"GPU {index} does not correct memory errors: `nvidia-smi --ecc-config=1`, and reboot the node"
            )
        if errors.isdigit() and int(errors) > 0:
            raise CheckError(f"GPU {index} has {errors} uncorrected memory errors since its reset: reset it")
    query = "--query-remapped-rows=remapped_rows.pending,remapped_rows.failure,remapped_rows.uncorrectable"
    for index, (pending, failure, rows) in enumerate(table(node, query)):
        if failure in ("1", "Yes") or (rows.isdigit() and int(rows) > REMAPPED_ROWS_MOST):
            raise CheckError(f"GPU {index} has no spare rows left: replace the node")
        if pending in ("1", "Yes"):
            raise CheckError(f"GPU {index} waits for a reset to replace rows of its memory: reboot the node")
    return "no uncorrected errors, no rows to remap"


def clocks(node, expected):
    """No GPU is slowed down by its hardware."""
    for index, *reasons in smi(node, ",".join(["index", *(f"clocks_event_reasons.{name}" for name in SLOWDOWNS)])):
        for reason, cause in zip(reasons, SLOWDOWNS.values(), strict=True):
            if reason == "Active":
                raise CheckError(f"GPU {index} is slowed down because of {cause}: check the node's cooling and power")
    return "not slowed down"


def xids(node, expected):
    """The driver has told of nothing since the boot that a GPU does not get over by itself."""
    command = ("journalctl", "--dmesg", "--boot", "--grep=NVRM: (Xid|GPU)", "--output=cat", "--no-pager")
    messages = node.run(*command, codes=(0, 1))  # 1: nothing was found
    for place in OFF_THE_BUS.findall(messages):
        raise CheckError(f"the GPU at {place} has fallen off the bus: reboot the node")
    for place, code, text in XID.findall(messages):
        if int(code) in REPLACE:
            raise CheckError(f"the GPU at {place} told of Xid {code}: replace the node")
        if int(code) in REBOOT or (int(code) == SAYS_ITSELF and "Required" in text):
            raise CheckError(
                f"the GPU at {place} told of Xid {code}: reboot the node, and replace it if it comes again"
            )
    return "none that matters since the boot"


def fabric(node, expected):
    """The NVLink fabric is complete: until then CUDA answers with error 802."""
    if switches(node, expected) == "none":
        return "no NVSwitch"
    active(node, "nvidia-fabricmanager")
    text = node.run("nvidia-smi", "-q")
    states = re.findall(r"^    Fabric\n\s+State\s*:\s*(.+)\n\s+Status\s*:\s*(.+)$", text, re.MULTILINE)
    reporting = [state for state in states if state[0] != "N/A"]  # before Hopper a GPU has no word for it
    for index, (state, status) in enumerate(reporting):
        if (state, status) != ("Completed", "Success"):
            raise CheckError(f"GPU {index} says {state}, {status}: look at `journalctl -u nvidia-fabricmanager`")
    return "completed on every GPU" if reporting else "the fabric manager runs"


def dcgm(node, expected):
    """DCGM is the locked one, and its short test passes on every GPU."""
    active(node, "nvidia-dcgm")
    active(node, "nvidia-dcgm-exporter")
    version, lock = re.search(r"ersion\s*:\s*([\d.]+)", node.run("dcgmi", "--version")), locked(node, expected)["dcgm"]
    if not version or version[1] != lock:
        raise CheckError(f"dcgmi is {version[1] if version else 'unknown'}, the lock says {lock}: run gpu_node.yml")
    diagnosis = json.loads(node.run("dcgmi", "diag", "-r", "1", "-j", seconds=DIAGNOSIS_SECONDS, codes=range(256)))
    for test in (test for group in diagnosis["DCGM Diagnostic"]["test_categories"] for test in group["tests"]):
        for result in test["results"]:
            if result["status"] == "Fail":
                why = "; ".join(warning["warning"] for warning in result.get("warnings", [])) or "no reason given"
                raise CheckError(f"{test['name']} on {result['entity_group']} {result['entity_id']}: {why}")
    return f"{lock}, level 1 passed"


def smi(node, fields):
    """The rows of a query, one a GPU."""
    return table(node, f"--query-gpu={fields}")


def table(node, query):
    text = node.run("nvidia-smi", query, "--format=csv,noheader,nounits")
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
