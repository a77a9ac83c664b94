"""Signed dnf repositories made from the same data as apt's. Needs rpmbuild, rpmsign, createrepo_c and gpg."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from apt_repository import Key, Package

TOOLS = {"rpmbuild": "rpm", "createrepo_c": "createrepo-c"}
# A spec has one package of a name and a version of its own for itself, which nobody wants.
SPEC = """Name: standin
Version: 1
Release: 1
Summary: Stand-in
License: none
%description
Stand-in
"""
# Streams as NVIDIA's repositories for RHEL 9 have them: without one of them enabled, dnf hides the packages it names.
STREAM = """---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: 580-open
  version: 1
  context: "00000000"
  arch: x86_64
  summary: Stand-in
  description: Stand-in
  license: {module: [none]}
  artifacts: {rpms: [%s]}
...
"""


def write(folder: Path, packages: Iterable[Package], key: Key, *, signs_packages: bool, signs_metadata: bool) -> None:
    """A repository in a folder, in the place of the one that was there."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for layer in _layers(list(packages)):
        _build(folder, layer)
    rpms = sorted(folder.glob("*.rpm"))
    if signs_packages:
        named = ("--define", "__gpg /usr/bin/gpg", "--define", f"_gpg_name {key.name}")
        _run("rpmsign", *named, "--addsign", *rpms, GNUPGHOME=key.home)
    _run("createrepo_c", "--quiet", folder)
    if driver := [rpm for rpm in rpms if "nvidia-" in rpm.name and "-580." in rpm.name]:
        modules = folder / "modules.yaml"
        modules.write_text(STREAM % ", ".join(_whole_name(rpm) for rpm in driver))
        _run("modifyrepo_c", "--mdtype=modules", modules, folder / "repodata")
        modules.unlink()
    if signs_metadata:
        sign(folder, key)


def sign(folder: Path, key: Key) -> None:
    """Signs the metadata of a repository, as it is now."""
    listing = folder / "repodata/repomd.xml"
    named = ("--batch", "--yes", "--quiet", "--local-user", key.name)
    _run("gpg", *named, "--armor", "--detach-sign", listing, GNUPGHOME=key.home)


def _layers(packages: Sequence[Package]) -> list[list[Package]]:
    """One build makes many packages, but each name and each file once."""
    layers: list[list[Package]] = []
    for package in packages:
        mine = {package.name, *package.files, *package.links}
        free = next(
            (layer for layer in layers if all(mine.isdisjoint({p.name, *p.files, *p.links}) for p in layer)), None
        )
        if free is None:
            layers.append([package])
        else:
            free.append(package)
    return layers


def _build(folder: Path, packages: Sequence[Package]) -> None:
    with tempfile.TemporaryDirectory() as place:
        spec, top = Path(place, "standin.spec"), Path(place, "top")
        spec.write_text(SPEC + _install(packages) + "".join(map(_part, packages)))
        given = {
            "_topdir": top,
            "_rpmdir": folder,
            "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
            "__os_install_post": "%{nil}",
            "_build_id_links": "none",
        }
        defined = [word for name, value in given.items() for word in ("--define", f"{name} {value}")]
        _run("rpmbuild", "-bb", "--quiet", "--target", "x86_64", *defined, spec)


def _install(packages: Sequence[Package]) -> str:
    lines = ["%install"]
    for package in packages:
        for path, text in package.files.items():
            mode = "755" if "bin/" in path else "644"
            body = f"cat > '%{{buildroot}}{path}' <<'END_OF_FILE'\n{text.replace('%', '%%')}END_OF_FILE"
            lines += [f"mkdir -p '%{{buildroot}}{Path(path).parent}'", body, f"chmod {mode} '%{{buildroot}}{path}'"]
        for path, target in package.links.items():
            lines += [f"mkdir -p '%{{buildroot}}{Path(path).parent}'", f"ln -s '{target}' '%{{buildroot}}{path}'"]
    return "\n".join(lines) + "\n"


def _part(package: Package) -> str:
    epoch, _, rest = package.version.rpartition(":")
    version, _, release = rest.partition("-")
    relations = {"Requires": package.depends, "Provides": package.provides, "Conflicts": package.conflicts}
    lines = [f"%package -n {package.name}", "Summary: Stand-in", "AutoReqProv: no"]
    lines += [f"Epoch: {epoch}"] if epoch else []
    lines += [f"Version: {version}", f"Release: {release}"]
    for field, words in relations.items():
        lines += [f"{field}: {_relation(word)}" for word in words.split(", ") if word]
    lines += [f"%description -n {package.name}", "Stand-in"]
    lines += [f"%post -n {package.name}", package.postinst] if package.postinst else []
    lines += [f"%files -n {package.name}", *package.files, *package.links]
    return "\n".join(lines) + "\n"


def _relation(word: str) -> str:
    """`name (>= version)`, as apt writes it, is `name >= version`."""
    return re.sub(r" \((\S+) (\S+)\)", r" \1 \2", word)


def _whole_name(rpm: Path) -> str:
    """As modules name their packages, with the epoch."""
    asked = (
        "rpm",
        "--query",
        "--package",
        "--nosignature",
        "--queryformat",
        "%{NAME}-%{EPOCHNUM}:%{VERSION}-%{RELEASE}.%{ARCH}",
    )
    return f'"{_run(*asked, rpm)}"'


def _run(*command: object, **environment: str) -> str:
    words = [str(word) for word in command]
    answer = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert answer.returncode == 0, f"{words[0]}: {answer.stderr}"
    return answer.stdout
