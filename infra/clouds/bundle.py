"""What a node needs to configure itself, as one archive: playbooks, training and locks.

The archive's name is its content's hash: a node fetches exactly the one that it was started with.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PARTS = ("playbooks", "training")
LOCK, PLAYER = "requirements.txt", "ansible-core"
ENTRY = re.compile(r"^(?P<name>[\w.-]+)==.*(?:\n[ \t].*)*\n", re.MULTILINE)
NEEDED_BY = re.compile(r"^\s+# +(?:via )? *(\S+)", re.MULTILINE)


def packed(project: Path) -> bytes:
    """A reproducible tar archive: byte-identical for the same files.

    ansible.txt in it is the part of the lock that runs a playbook: what a node installs before it can install the rest.
    """
    lock = (project / LOCK).read_text()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:

        def add(name: str, content: bytes, mode: int = 0o644) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))

        for file in _files(project):
            mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            add(file.relative_to(project).as_posix(), file.read_bytes(), mode)
        add(LOCK, lock.encode())
        add("ansible.txt", "".join(needed(lock, PLAYER)).encode())
    return archive.getvalue()


def _files(project: Path) -> Iterator[Path]:
    for part in PARTS:
        for file in sorted((project / part).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def needed(lock: str, package: str) -> list[str]:
    """The entries of a hash-pinned lock for a package and for all that it needs, by the lock's own `# via` remarks."""
    entries = {match["name"]: match[0] for match in ENTRY.finditer(lock)}
    names = {package} & set(entries)
    while more := {name for name, entry in entries.items() if names & set(NEEDED_BY.findall(entry))} - names:
        names |= more
    return [entry for name, entry in entries.items() if name in names]


def write_archive(content: bytes, file: Path) -> Path:
    """Writes the archive to a file for the engine, unless that has this content already; returns the file.

    A file of this name with other content, or a link, is replaced: it is foreign (of another branch for instance), and
    nodes run the archive's content as root.
    """
    if file.is_symlink() or not file.is_file() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.unlink(missing_ok=True)  # a link would be written through
        fresh.write_bytes(content)
        fresh.replace(file)
    return file
