"""The Pulumi engine: the one of PATH, else the cached one, else one built from Go modules.

Its version is stated once, in tools/pulumi/go.mod, and the hash of every module in go.sum beside it. The official
installer is not run: it is fetched anew each time, and nothing here knows its hash. The binary's path is written to
`.gpufleet/engine`, one line: commands that run the engine read it there and put its folder first on PATH. An engine
that was built from Go modules has no language host for Python; then ours (tools/language-host) lies beside it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.phases import CommandError, PhaseError, command, shown

MODULE = "github.com/pulumi/pulumi/pkg/v3"
HOSTS = ("pulumi-language-python", "pulumi-resource-pulumi-python")

Working = Callable[[str], None]


@dataclass(frozen=True)
class Engine:
    """An engine that runs here, and where it is from, in words."""

    path: Path
    version: str
    source: str


def engine_phase(root: Path, working: Working) -> str:
    """Finds or makes the engine, sees that it can run Python programs, and writes `.gpufleet/engine`."""
    version = module_version(root, MODULE)
    engine = on_path(version, working) or cached(version, working) or built_engine(root, version, working)
    if not speaks_python(engine.path):
        place_hosts(root, engine.path.parent)
    pointer = root / ".gpufleet" / "engine"
    pointer.parent.mkdir(mode=0o700, exist_ok=True)
    pointer.write_text(f"{engine.path}\n", encoding="utf-8")
    return f"pulumi {engine.version}, {engine.source}"


def module_version(root: Path, module: str) -> str:
    """The version tools/pulumi/go.mod asks of a module, such as "3.259.0"; of "go", the least Go that builds it."""
    text = (root / "tools" / "pulumi" / "go.mod").read_text(encoding="utf-8")
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} v?(\d+(?:\.\d+)+)", text, flags=re.MULTILINE)
    if match is None:
        raise PhaseError(f"tools/pulumi/go.mod names no version of {module}", "restore it from git")
    return match[1]


def at_least(version: str, least: str) -> bool:
    """Whether a dotted version is `least` or newer, number by number."""
    return _numbers(version) >= _numbers(least)


def version_of(engine: Path, working: Working) -> str | None:
    """The version an engine says it has; None when it does not run here."""
    quiet = {"PULUMI_SKIP_UPDATE_CHECK": "1"}
    try:
        printed = command([str(engine), "version"], working, env=quiet, limit_seconds=30)
    except CommandError:
        return None
    match = re.search(r"^v?(\d+\.\d+\.\d+)", "\n".join(printed), flags=re.MULTILINE)
    return match[1] if match else None


def on_path(least: str, working: Working) -> Engine | None:
    """The engine of PATH, where it is new enough.

    One that lacks a language host is copied beside ours: the engine warns at every run about a host that is not in its
    own folder, and follows a link back to the folder it came from.
    """
    program = shutil.which("pulumi")
    version = version_of(Path(program), working) if program else None
    if program is None or version is None or not at_least(version, least):
        return None
    engine = Path(program)
    if speaks_python(engine) or engine.parent == cache(version):
        return Engine(engine, version, f"of {shown(engine.parent)}")
    copy = cache(version) / "pulumi"
    if version_of(copy, working) != version:
        with replacing(copy) as new:
            shutil.copy2(engine.resolve(), new)
    return Engine(copy, version, f"copied from {shown(engine.parent)}")


def cached(release: str, working: Working) -> Engine | None:
    """The engine an earlier set-up of this or another checkout left in the cache."""
    engine = cache(release) / "pulumi"
    return Engine(engine, release, f"from {shown(engine.parent)}") if version_of(engine, working) == release else None


def built_engine(root: Path, release: str, working: Working) -> Engine:
    """A new engine in the cache, built with Go."""
    try:
        return Engine(built(root, release, working), release, "built from Go modules")
    except CommandError as error:
        remedy = (
            f"install Go {module_version(root, 'go')} or newer (https://go.dev/dl), or put pulumi {release} or newer on"
            " PATH (https://www.pulumi.com/docs/install); run again"
        )
        what = f"no engine: none on PATH is new enough, and it cannot be built: {error}"
        raise PhaseError(what, remedy, error.tail) from error


def built(root: Path, release: str, working: Working) -> Path:
    """Builds the engine from tools/pulumi, about five minutes on two cores. Raises CommandError.

    Go holds each module against go.sum, whoever sent it (Go Modules Reference, "Authenticating modules").
    """
    module = root / "tools" / "pulumi"
    least = module_version(root, "go")
    version = command(["go", "env", "GOVERSION"], working, env={"GOTOOLCHAIN": "local"}, cwd=Path("/"))[-1]
    if not at_least(version[2:], least):
        raise CommandError(["go", "build"], f"needs Go {least} or newer, here is {version[2:]}", ())
    engine = cache(release) / "pulumi"
    engine.parent.mkdir(parents=True, exist_ok=True)
    compiled = 0

    def count(line: str) -> None:
        nonlocal compiled
        compiled += "/" in line and not line.startswith("go: ")
        working(line if line.startswith("go: ") else f"building with Go, minutes but once: {compiled} packages so far")

    # An engine without a version fails its own checks; the tags leave out cgo's user database and gRPC's tracing pages.
    linked = f"-w -s -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{release}"
    with replacing(engine) as new:
        build = ["go", "build", "-mod=readonly", "-v", "-trimpath", "-tags", "osusergo,grpcnotrace", "-ldflags", linked]
        command([*build, "-o", str(new), f"{MODULE}/cmd/pulumi"], count, env={"CGO_ENABLED": "0"}, cwd=module)
    return engine


def place_hosts(root: Path, folder: Path) -> None:
    """Puts our language host and dynamic-provider launcher beside an engine, renewing older ones."""
    for name in HOSTS:
        source, target = root / "tools" / "language-host" / name, folder / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            with replacing(target) as new:
                shutil.copyfile(source, new)
                new.chmod(0o755)


def speaks_python(engine: Path) -> bool:
    """Whether the official language host, a binary, lies beside an engine (links followed, as the engine does)."""
    host = engine.resolve().parent / HOSTS[0]
    if not host.exists():
        return False
    with host.open("rb") as file:
        return file.read(2) != b"#!"


def cache(version: str) -> Path:
    """Where the engine of a version is kept, for every checkout of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base, "gpufleet", "pulumi", f"v{version}")


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` to write to, which becomes `target` when the block ends well, and goes otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        yield new
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
