"""Run on a node: every RDMA port that it must have is there, active, as fast as told, and under a subnet manager.

Reads what the kernel shows (Documentation/ABI/stable/sysfs-class-infiniband), so it needs no tool and no rights. A port
of InfiniBand gets its addresses from the subnet manager: one that lacks it stays in INIT, and NCCL only times out.
Arguments: EXPECTED (the handover's `rdma` of the group, JSON) FOLDER (/sys/class/infiniband). Prints a line for each
fault and exits 1, else one line of what is there.
"""

import json
import sys
from pathlib import Path


def main(expected, folder):
    faults = [fault for hca in expected["hcas"] for fault in port_faults(expected, hca, folder / hca / "ports" / "1")]
    if faults:
        print("\n".join(faults))
        return 1
    print(f"{len(expected['hcas'])} ports of {expected['link_layer']}, {expected['gbits']} Gbit/s each")
    return 0


def port_faults(expected, hca, port):
    """The faults of one port."""
    if not port.is_dir():
        yield f"{hca}: is missing: see `lspci -d 15b3:` and the driver's log"
        return
    state = read(port / "state").partition(": ")[2]
    if state != "ACTIVE":
        waits = " and waits for a subnet manager" if state in ("INIT", "ARMED") else ": look at its cable and switch"
        yield f"{hca}: port is {state or 'unknown'}{waits}"
    layer = read(port / "link_layer")
    if layer != expected["link_layer"]:
        yield f"{hca}: is {layer}, not {expected['link_layer']}: set LINK_TYPE_P1 with mlxconfig"
        return
    gbits = read(port / "rate").partition(" ")[0]
    if state == "ACTIVE" and gbits != str(expected["gbits"]):
        yield f"{hca}: runs at {gbits} Gbit/s, not {expected['gbits']}: a worn cable, or a slower switch port"
    if layer == "InfiniBand":
        yield from managed(expected, hca, port)


def managed(expected, hca, port):
    """What the subnet manager has to have done."""
    if int(read(port / "sm_lid") or "0", 0) == 0:
        yield f"{hca}: no subnet manager has found it: start opensm, or the switch's own"
    key, index = expected["partition_key"], expected["partition_index"]
    if key is not None and (there := read(port / "pkeys" / str(index))) != key:
        yield f"{hca}: partition key {there or 'none'} at index {index}, not {key}: see the subnet manager's partitions"


def read(file):
    """What stands in a file of the kernel, empty where it has none."""
    try:
        return file.read_text().strip().lower() if file.parent.name == "pkeys" else file.read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), Path(sys.argv[2])))
