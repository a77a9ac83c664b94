"""Run by an environment's own interpreter: prints what its lock names and it has not, or not so, one a line.

Argument: LOCK. These are what pip would change.
"""

import importlib.metadata
import sys
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

for line in Path(sys.argv[1]).read_text().replace("\\\n", "").splitlines():
    text = line.partition("--hash")[0].strip()
    if not text or text.startswith(("#", "-")):
        continue
    requirement = Requirement(text)
    if requirement.marker and not requirement.marker.evaluate():
        continue
    try:
        there = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        there = None
    if there is None or not requirement.specifier.contains(there, prereleases=True):
        print(requirement.name)
