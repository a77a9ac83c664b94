"""Run on a node: prints which packages are not as the lock says, as JSON.

Arguments: MANAGER (apt or dnf), then as JSON WANTED (name → version pattern), UNWANTED (names), NAMES (regular
expressions) and DRIVER (a version, empty for none). lacking: wanted, and not installed at such a version. unwanted:
installed all the same. Of the packages of those names, astray: installed at the version of another driver; loose, held:
not held, and held. With dnf nothing is held one by one: the sources leave it no other version to take.
"""

import fnmatch
import json
import re
import subprocess
import sys

manager = sys.argv[1]
required, unwanted, names, driver = (json.loads(argument) for argument in sys.argv[2:])


def listed(*command):
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in listing.splitlines()]


def of_apt():
    """The installed packages with their versions, and those that are held."""
    rows = listed("dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${db:Status-Abbrev}\n")
    whole = [row for row in rows if row[2][1] == "i"]  # unpacked and configured
    return {name: version for name, version, _ in whole}, {name for name, _, status in whole if status[0] == "h"}


def of_dnf():
    """The same, without epochs. Headers of several kernels may be there: they go by their whole names."""
    rows = listed("rpm", "--query", "--all", "--queryformat", "%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\n")
    headers = [row for row in rows if row[0].startswith("kernel-devel")]
    whole = {f"{name}-{version}{end}": version for name, version, arch in headers for end in ("", f".{arch}")}
    versions = {**whole, **{name: version for name, version, _ in rows}}
    return versions, set(versions)


def is_as_wanted(name):
    return name in installed and fnmatch.fnmatch(installed[name], required[name])


def is_of_another_driver(name):
    return re.match(r"\d{3}\.\d+(\.\d+)?-", installed[name]) and not installed[name].startswith(f"{driver}-")


installed, held = of_dnf() if manager == "dnf" else of_apt()
locked = re.compile("|".join(names))
ruled = {name for name in installed if locked.fullmatch(name)}
print(
    json.dumps(
        {
            "lacking": [name for name in required if not is_as_wanted(name)],
            "unwanted": [name for name in unwanted if name in installed],
            "astray": sorted(name for name in ruled if driver and is_of_another_driver(name)),
            "loose": sorted(ruled - held),
            "held": sorted(ruled & held),
        }
    )
)
