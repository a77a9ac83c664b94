"""Run on a node: says why it does not hold the training package as it should, in one word; nothing when it does.

Arguments: FOLDER NAME. It should hold the package NAME, whole to the last byte, with `current` leading to it.
"""

import hashlib
import subprocess
import sys
from pathlib import Path


def intact(package):
    manifest = package / "MANIFEST"
    if not manifest.is_file() or not package.name.endswith(hashlib.sha256(manifest.read_bytes()).hexdigest()[:16]):
        return False
    check = ["sha256sum", "--check", "--quiet", "--strict", "MANIFEST"]
    return subprocess.run(check, cwd=package, capture_output=True, check=False).returncode == 0


folder, name = Path(sys.argv[1]), sys.argv[2]
link = folder / "current"
if not (folder / name).exists():
    print("missing")
elif not intact(folder / name):
    print("damaged")
elif not link.is_symlink() or str(link.readlink()) != name:
    print("unlinked")
