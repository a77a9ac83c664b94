"""Signed apt repositories made from data: real packages, real signatures, served over HTTP. Needs gpg only."""

from __future__ import annotations

import email.utils
import functools
import gzip
import hashlib
import http.server
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ARCHITECTURE = "amd64"


@dataclass(frozen=True, kw_only=True)
class Package:
    """One package. files: path → text; those below a bin folder are executable, those below /etc are its settings.

    links: path → target. conflicts also stand for what it replaces. postinst: what configuring it runs.
    """

    name: str
    version: str
    depends: str = ""
    conflicts: str = ""
    provides: str = ""
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    postinst: str = ""

    @property
    def file(self) -> str:
        return f"{self.name}_{self.version.rpartition(':')[2]}_{ARCHITECTURE}.deb"

    @property
    def control(self) -> str:
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": ARCHITECTURE,
            "Maintainer": "Stand-in <standin@example.invalid>",
            "Depends": self.depends,
            "Conflicts": self.conflicts,
            "Replaces": self.conflicts,
            "Provides": self.provides,
            "Description": f"test stand-in for {self.name}",
        }
        return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)

    def deb(self) -> bytes:
        """An ar archive of three members, the same bytes at any time."""
        about = [("/control", self.control, 0o644)]
        if settings := "".join(f"{path}\n" for path in self.files if path.startswith("/etc/")):
            about.append(("/conffiles", settings, 0o644))
        if self.postinst:
            about.append(("/postinst", f"#!/bin/sh\nset -e\n{self.postinst}\n", 0o755))
        content = [(path, text, 0o755 if "bin/" in path else 0o644) for path, text in self.files.items()]
        members = (("debian-binary", b"2.0\n"), ("control.tar", _tar(about)), ("data.tar", _tar(content, self.links)))
        return b"!<arch>\n" + b"".join(_member(name, body) for name, body in members)


class Key:
    """A throw-away signing key. fingerprint: its whole one."""

    def __init__(self, name: str) -> None:
        self.home = tempfile.mkdtemp(prefix="gpg-")
        self.name = f"{name}@example.invalid"
        self._gpg("--passphrase", "", "--quick-gen-key", self.name, "ed25519", "sign", "never")
        self.public = self._gpg("--armor", "--export", self.name)
        listing = self._gpg("--with-colons", "--list-keys", self.name).decode()
        self.fingerprint = next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr"))

    def signed(self, text: str) -> bytes:
        return self._gpg("--clearsign", given=text.encode())

    def expired(self) -> bytes:
        """Its public part as it is when its time is over."""
        self._gpg("--quick-set-expire", self.fingerprint, "seconds=1")
        public = self._gpg("--armor", "--export", self.name)
        time.sleep(2)  # the clock that expires it counts whole seconds
        self._gpg("--quick-set-expire", self.fingerprint, "never")
        return public

    def close(self) -> None:
        """Ends the key's agent."""
        subprocess.run(["gpgconf", "--kill", "all"], env={**os.environ, "GNUPGHOME": self.home}, check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def _gpg(self, *arguments: str, given: bytes | None = None) -> bytes:
        command = ["gpg", "--batch", "--yes", "--quiet", *arguments]
        environment = {**os.environ, "GNUPGHOME": self.home}
        return subprocess.run(command, input=given, capture_output=True, check=True, env=environment).stdout


def write(folder: Path, packages: Iterable[Package], key: Key, origin: str, suite: str = "") -> None:
    """A repository in a folder, in the place of the one that was there: flat like NVIDIA's, or of one suite."""
    indices = folder / "dists" / suite if suite else folder
    listing = f"main/binary-{ARCHITECTURE}/Packages" if suite else "Packages"
    shutil.rmtree(folder, ignore_errors=True)
    (indices / listing).parent.mkdir(parents=True)
    index = ""
    for package in packages:
        deb = package.deb()
        (folder / package.file).write_bytes(deb)
        about = f"Filename: ./{package.file}\nSize: {len(deb)}\nSHA256: {hashlib.sha256(deb).hexdigest()}\n"
        index += package.control + about + "\n"
    files = {listing: index.encode(), f"{listing}.gz": gzip.compress(index.encode(), mtime=0)}
    sums = ""
    for name, body in files.items():
        (indices / name).write_bytes(body)
        sums += f" {hashlib.sha256(body).hexdigest()} {len(body)} {name}\n"
    day = email.utils.formatdate(time.time() - 60, usegmt=True).replace("GMT", "UTC")
    about = f"Origin: {origin}\nLabel: {origin}\nArchitectures: {ARCHITECTURE}\nComponents: main\nDate: {day}\n"
    release = (f"Codename: {suite}\n" if suite else "") + about + f"SHA256:\n{sums}"
    (indices / "InRelease").write_bytes(key.signed(release))


def on_disk(root: Path, *names: str) -> None:
    """The distribution's own packages that the machine at this root lacks for these, in an archive on its disk."""
    place = root / "srv/archive"
    place.mkdir(parents=True)
    status = f"--option=Dir::State::status={root}/var/lib/dpkg/status"
    asked = ["apt-get", "--simulate", "--no-install-recommends", status, "install", *names]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    lacking = [line.split()[1] for line in told.splitlines() if line.startswith("Inst")]
    subprocess.run(["apt-get", "--quiet", "download", *lacking], cwd=place, capture_output=True, check=True)
    index = ""
    for deb in place.glob("*.deb"):
        fields = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
        body = deb.read_bytes()
        index += f"{fields}Filename: ./{deb.name}\nSize: {len(body)}\nSHA256: {hashlib.sha256(body).hexdigest()}\n\n"
    (place / "Packages").write_text(index)
    (root / "etc/apt/sources.list.d/own.list").write_text("deb [trusted=yes] file:/srv/archive ./\n")


class Server(http.server.ThreadingHTTPServer):
    """A web server of a folder. refuses: by address, so many more requests of a client it answers with 503."""

    def __init__(self, folder: Path, address: str, port: int) -> None:
        super().__init__((address, port), functools.partial(_Answer, directory=str(folder)))
        self.refuses: Counter[str] = Counter()


class _Answer(http.server.SimpleHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]: whoever serves, and no other

    def do_GET(self) -> None:
        client = self.client_address[0]
        if self.server.refuses[client] > 0:
            self.server.refuses[client] -= 1
            self.send_error(http.HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            super().do_GET()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@contextmanager
def served(folder: Path, address: str, port: int) -> Iterator[Server]:
    """The folder over HTTP."""
    server = Server(folder, address, port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _tar(files: list[tuple[str, str, int]], links: dict[str, str] | None = None) -> bytes:
    packed = io.BytesIO()
    paths = [path for path, _, _ in files] + list(links or {})
    folders = sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents})
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in folders:
            entry = _entry(path, 0o755, tarfile.DIRTYPE)
            tar.addfile(entry)
        for path, text, mode in files:
            entry = _entry(path, mode, tarfile.REGTYPE)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        for path, target in (links or {}).items():
            entry = _entry(path, 0o777, tarfile.SYMTYPE)
            entry.linkname = target
            tar.addfile(entry)
    return packed.getvalue()


def _entry(path: str, mode: int, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo("." + path)
    entry.mode, entry.type, entry.uname, entry.gname = mode, kind, "root", "root"
    return entry


def _member(name: str, body: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n"
    return head.encode() + body + b"\n" * (len(body) % 2)
