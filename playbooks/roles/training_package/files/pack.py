"""Builds the training package's archive on the controlling computer.

Argument: SOURCE. Prints {"name","archive"}, the archive in base64. It holds the package and MANIFEST, the sha256 of
every file in the format of sha256sum; the name is `training-` and the start of the manifest's own sha256. Equal content
gives the same name and the same bytes, on every computer and at any time.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def files(package: Path) -> dict[str, bytes]:
    """The package's files by their name in the archive, without what Python and editors leave behind."""
    contents = {}
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package.parent)
        if path.is_file() and path.suffix != ".pyc" and not any(part.startswith(".") for part in inside.parts):
            contents[inside.as_posix()] = path.read_bytes()
    return contents


def archive(content: dict[str, bytes]) -> bytes:
    """A gzipped tar of the content, with no time, owner or mode of this computer in it."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as squeezed, tarfile.open(fileobj=squeezed, mode="w") as tar:
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def main(source: str) -> int:
    package = Path(source).resolve()
    if not (package / "__init__.py").is_file():
        print(f"{package} is no Python package: the training package lies beside the playbooks", file=sys.stderr)
        return 1
    content = files(package)
    manifest = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in content.items()).encode()
    packed = archive({"MANIFEST": manifest, **content})
    name = f"training-{hashlib.sha256(manifest).hexdigest()[:16]}"
    print(json.dumps({"name": name, "archive": base64.b64encode(packed).decode()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
