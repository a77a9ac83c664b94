"""The Python environment: `.venv`, holding exactly what requirements.txt says, hash by hash, and the project itself."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.phases import CommandError, PhaseError, command

OLDEST, NEWEST = (3, 11), (3, 13)  # the lock holds for these; 3.14 has not been tried
STAMP = "gpufleet.stamp"


def python_phase() -> str:
    """Refuses an interpreter the lock was not made for."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return ".".join(map(str, sys.version_info[:3]))
    have = ".".join(map(str, sys.version_info[:2]))
    raise PhaseError(
        f"this is Python {have}; the lock is made for {_dotted(OLDEST)} to {_dotted(NEWEST)}",
        f"install Python {_dotted(OLDEST)} and run again, or name one: make PYTHON=/path/to/python{_dotted(OLDEST)} …",
    )


def fitting_python() -> str | None:
    """Another interpreter of PATH that the lock fits, where this one does not."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return None
    minors = range(OLDEST[1], NEWEST[1] + 1)
    return next((program for minor in minors if (program := shutil.which(f"python3.{minor}"))), None)


def environment_phase(root: Path, working: Callable[[str], None]) -> str:
    """Makes `.venv` hold the lock and the project; does nothing when it does already.

    The stamp is written last and removed first, so an environment without one is incomplete, or not ours: it is
    recreated. With an older stamp only the difference is installed.
    """
    venv = root / ".venv"
    stamp = venv / STAMP
    if (venv / "bin" / "python").exists() and stamp.exists():
        if stamp.read_text(encoding="utf-8") == fingerprint(root):
            return f"{installed(venv)} packages, unchanged"
        stamp.unlink()
    else:
        make_venv(venv, working)
    try:
        install(root, venv, working)
    except CommandError as error:
        remedy = "see that the package index can be reached, then run again: what was downloaded is kept"
        raise PhaseError(str(error), remedy, error.tail) from error
    stamp.write_text(fingerprint(root), encoding="utf-8")
    return f"{installed(venv)} packages from the lock"


def fingerprint(root: Path) -> str:
    """The inputs of `.venv`: the lock, the project's metadata, and the interpreter and place of pyvenv.cfg."""
    sources = (root / "requirements.txt", root / "pyproject.toml", root / ".venv" / "pyvenv.cfg")
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest() + "\n"


def make_venv(venv: Path, working: Callable[[str], None]) -> None:
    """An empty environment with pip, in place of whatever was there."""
    if importlib.util.find_spec("ensurepip") is None:
        raise PhaseError(
            "this Python comes without `ensurepip`, which makes environments",
            f"sudo apt-get install python3.{sys.version_info[1]}-venv, then run again",
        )
    if venv.is_symlink():
        venv.unlink()
    elif venv.exists():
        shutil.rmtree(venv)
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not an environment's own copy
    try:
        command([base, "-m", "venv", str(venv)], lambda _: working("making an empty environment"))
    except CommandError as error:
        raise PhaseError(
            str(error), "see that this Python makes environments: python3 -m venv DIR", error.tail
        ) from error


def install(root: Path, venv: Path, working: Callable[[str], None]) -> None:
    """uv by pip, the lock by uv, the project without its dependencies. Raises CommandError."""
    python = str(venv / "bin" / "python")
    lock = root / "requirements.txt"
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder, "uv.txt")
        only_uv.write_text(locked(lock.read_text(encoding="utf-8"), "uv"), encoding="utf-8")
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        command([*pip, "install", "--require-hashes", "--no-deps", "-r", str(only_uv)], working)
        index = package_index(command([*pip, "config", "list"], lambda _: working("asking pip for its package index")))
    uv = [str(venv / "bin" / "uv"), "--no-config", "pip"]
    into = ["--python", python]
    # Compiled here, once: where Python may not write its caches, every command would compile all it imports anew.
    command([*uv, "sync", *into, "--require-hashes", "--compile-bytecode", str(lock)], working, env=index)
    # `compat` is a plain path in a .pth file; the default is an import hook that each start of Python pays for.
    editable = ["--config-settings", "editable_mode=compat", "-e", str(root)]
    command([*uv, "install", *into, "--no-deps", "--no-build-isolation", *editable], working, env=index)
    own = [str(root / package) for package in ("infra", "ops", "training")]
    command([python, "-m", "compileall", "-q", *own], working)


def locked(lock: str, package: str) -> str:
    """The entry of one package in a hash-pinned lock, its hashes included."""
    entry = re.search(rf"^{re.escape(package)}==(?:.*\\\n)*.*", lock, flags=re.MULTILINE)
    if entry is None:
        raise PhaseError(f"requirements.txt holds no entry `{package}==…`", "restore it from git, or run: make lock")
    return entry.group() + "\n"


def package_index(pip_config: list[str]) -> dict[str, str]:
    """The environment that makes uv ask the package index pip is set to ask: uv does not read pip's configuration."""
    if "UV_DEFAULT_INDEX" in os.environ or "UV_INDEX_URL" in os.environ:
        return {}
    urls = [line.split("=", 1)[1].strip("'\"") for line in pip_config if re.match(r"\S*\.index-url=", line)]
    return {"UV_DEFAULT_INDEX": urls[-1]} if urls else {}


def installed(venv: Path) -> int:
    """How many packages an environment holds."""
    return len(list(venv.glob("lib/python3*/site-packages/*.dist-info")))


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
