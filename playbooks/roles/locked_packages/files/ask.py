"""Run on a node: prints which packages are not as the lock says, as JSON.

Arguments: WANTED (name → version pattern), UNWANTED (names), NAMES (regular expressions) and DRIVER (a version, empty
for none), as JSON. lacking: wanted, and not installed at such a version. unwanted: installed all the same. Of the
packages of those names, astray: installed at the version of another driver; loose, held: not held, and held.
"""

import fnmatch
import json
import re
import subprocess
import sys

wanted, unwanted, names, driver = (json.loads(argument) for argument in sys.argv[1:])
listing = ["dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${db:Status-Abbrev}\n"]
installed, held = {}, set()
for line in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines():
    name, version, (want, state, *_) = line.split("\t")
    if state == "i":  # whole: unpacked and configured
        installed[name] = version
        held |= {name} if want == "h" else set()


def is_as_wanted(name):
    return name in installed and fnmatch.fnmatch(installed[name], wanted[name])


def is_of_another_driver(name):
    return re.match(r"\d{3}\.\d+(\.\d+)?-", installed[name]) and not installed[name].startswith(f"{driver}-")


locked = re.compile("|".join(names))
ruled = {name for name in installed if locked.fullmatch(name)}
print(
    json.dumps(
        {
            "lacking": [name for name in wanted if not is_as_wanted(name)],
            "unwanted": [name for name in unwanted if name in installed],
            "astray": sorted(name for name in ruled if driver and is_of_another_driver(name)),
            "loose": sorted(ruled - held),
            "held": sorted(ruled & held),
        }
    )
)
