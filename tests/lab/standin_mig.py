"""The MIG part of the stand-in for nvidia-smi: modes, and slices that are gone with the next boot.

Runs inside the machine. Texts and exit codes: NVIDIA Multi-Instance GPU User Guide, "Getting Started with MIG".
"""

import json
from pathlib import Path

SLICES = Path("/run/standin/mig.json")  # GPU number → its profiles; a GPU that is not in it is not in MIG mode
ABLE = ("8.0", "9.0", "10.0", "10.3")  # compute capabilities


def nvidia_smi(arguments, there):
    gpu = arguments[arguments.index("-i") + 1]
    cut = slices()
    if "-mig" in arguments:
        if there["capability"] not in ABLE:
            print(f"Unable to enable MIG Mode for GPU {gpu}: Not Supported")
            return 3
        on = arguments[arguments.index("-mig") + 1] == "1"
        return keep({**cut, gpu: cut.get(gpu, [])} if on else without(cut, gpu))
    if "-dci" in arguments or "-dgi" in arguments:
        if not cut.get(gpu):
            print("No GPU instances found: Not Found")
            return 6
        return keep({**cut, gpu: [] if "-dgi" in arguments else cut[gpu]})
    if gpu not in cut:
        print(f"No MIG-enabled devices found on GPU {gpu}.")
        return 6
    return keep({**cut, gpu: arguments[arguments.index("-cgi") + 1].split(",")})


def listed(gpu):
    """What `-L` prints below a GPU."""
    return "".join(
        f"  MIG {profile}     Device  {i}: (UUID: MIG-{gpu}-{i})\n"
        for i, profile in enumerate(slices().get(str(gpu), []))
    )


def named(gpu):
    """What containers know a GPU by, or its slices."""
    cut = slices().get(str(gpu), [])
    return [f"{gpu}:{i}" for i in range(len(cut))] or [gpu]


def mode(there, gpu):
    if there["capability"] not in ABLE:
        return "[N/A]"
    return "Enabled" if str(gpu) in slices() else "Disabled"


def slices():
    return json.loads(SLICES.read_text()) if SLICES.exists() else {}


def without(cut, gpu):
    return {number: profiles for number, profiles in cut.items() if number != gpu}


def keep(cut):
    SLICES.write_text(json.dumps(cut))
    return 0
