"""The control plane that tests of Kubernetes start: built from Go modules once a version, kept in the user's cache.

etcd, the API server, its controllers and the scheduler come from tools/kubernetes, kwok, which plays the nodes, from
tools/kwok, and the custom resources' definitions from their projects' own modules. The folder's path is written to
`.gpufleet/control-plane`, one line.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.engine import at_least
from tools.phases import CommandError, PhaseError, SkippedError, command, shown

PROGRAMS = {
    "etcd": ("kubernetes", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
}


@dataclass(frozen=True)
class Definitions:
    """Where a project keeps its custom resources' definitions. sum: of the module's files, as Go's go.sum has it."""

    module: str
    sum: str
    files: str


DEFINITIONS = (
    Definitions(
        "sigs.k8s.io/kueue@v0.19.2",
        "h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8=",
        "config/components/crd/bases/*.yaml",
    ),
    Definitions(
        "sigs.k8s.io/jobset@v0.12.0",
        "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
        "config/components/crd/bases/*.yaml",
    ),
    Definitions(
        "github.com/kubeflow/trainer/v2@v2.3.0",
        "h1:Je+e7zvTLzB4qW09J1fB7pZrqvPtWuGng2NqdN5p5QU=",
        "manifests/base/crds/trainer*.yaml",
    ),
    Definitions(
        "github.com/prometheus-operator/prometheus-operator@v0.93.1",
        "h1:4Juk8v93RdG1DSGD/mGp+SeQKPmnlLIj2iq3blLZgFY=",
        "example/*-crd/*_prometheusrules.yaml",
    ),
    Definitions(
        "github.com/kedacore/keda/v2@v2.20.2",
        "h1:SR60v8uIcelbveS8n/1jcl8tLdBBIbHMxmdOHw8tKqA=",
        "config/crd/bases/keda.sh_scaledobjects.yaml",
    ),
)
STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
WITHOUT = "tests of Kubernetes will be skipped"

Working = Callable[[str], None]


def control_plane_phase(root: Path, working: Working) -> str:
    """Finds or builds it. Raises SkippedError where there is no Go to build it with: those tests then say so, too."""
    folder = cache(root)
    return found_or_built(
        root, "control-plane", folder, f"kubernetes {_version(root)}", lambda: _build(root, folder, working), working
    )


def found_or_built(
    root: Path, pointer: str, folder: Path, what: str, build: Callable[[], None], working: Working
) -> str:
    """Writes where the folder is to `.gpufleet/<pointer>`, once it is there; returns the phase's note.

    Raises SkippedError where there is no Go to build it with, PhaseError when that fails.
    """
    note = f"{what}, from {shown(folder)}"
    if not folder.is_dir():
        _need_go(root, working)
        try:
            build()
        except CommandError as error:
            raise PhaseError(str(error), "see that Go modules can be fetched, then run again", error.tail) from error
        note = f"{what}, built from Go modules"
    pointer_file = root / ".gpufleet" / pointer
    pointer_file.parent.mkdir(exist_ok=True)
    pointer_file.write_text(f"{folder}\n", encoding="utf-8")
    return note


def cache(root: Path) -> Path:
    """Where the programs are kept; other modules or definitions are another folder."""
    recipe = hashlib.sha256(json.dumps([PROGRAMS, [asdict(each) for each in DEFINITIONS], STAGES]).encode())
    for module in ("kubernetes", "kwok"):
        recipe.update((root / "tools" / module / "go.sum").read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gpufleet" / "kubernetes" / f"{_version(root)}-{recipe.hexdigest()[:8]}"


def _version(root: Path) -> str:
    text = (root / "tools" / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    match = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", text, flags=re.MULTILINE)
    if match is None:
        raise PhaseError("tools/kubernetes/go.mod names no version of k8s.io/kubernetes", "restore it from git")
    return match[1]


def _need_go(root: Path, working: Working) -> None:
    text = (root / "tools" / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    least = re.search(r"^go (\S+)", text, flags=re.MULTILINE)
    try:
        version = command(["go", "env", "GOVERSION"], working, env={"GOTOOLCHAIN": "local"}, cwd=Path("/"))[-1]
    except CommandError as error:
        raise SkippedError(f"no Go to build a control plane with: {WITHOUT}") from error
    if least is None or not at_least(version[2:], least[1]):
        raise SkippedError(f"Go {version[2:]} is too old to build a control plane with: {WITHOUT}")


def _build(root: Path, folder: Path, working: Working) -> None:
    """About eight minutes on two cores. Raises CommandError."""
    with whole(folder) as new:
        # Clients read the server's version, which is "v0.0.0-master+…" unless it is told.
        linked = f"-X k8s.io/component-base/version.gitVersion={_version(root)}"
        compiled(root, new, PROGRAMS, working, linked)
        (new / "stages.yaml").write_text("\n---\n".join(_stages(root, working)), encoding="utf-8")
        (new / "crds").mkdir()
        for definitions in DEFINITIONS:
            for file in files(definitions, working):
                shutil.copyfile(file, new / "crds" / file.name)


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A folder to fill, which is there under its own name when it is whole, and not at all before."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as aside:
        new = Path(aside, "whole")
        new.mkdir()
        yield new
        try:
            new.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another checkout's set-up was first, and made the same
                raise


def compiled(
    root: Path, into: Path, programs: Mapping[str, tuple[str, str]], working: Working, linked: str = ""
) -> None:
    """Builds programs, each of a module below tools/ and a package. Raises CommandError."""
    for name, (module, package) in programs.items():
        build = ["go", "build", "-v", "-trimpath", "-ldflags", f"-s -w {linked}", "-o", str(into / name), package]
        command(build, _Count(name, working).line, env={"CGO_ENABLED": "0"}, cwd=root / "tools" / module)


class _Count:
    """Tells how many packages a build has compiled."""

    def __init__(self, name: str, working: Working) -> None:
        self._name, self._working, self._compiled = name, working, 0

    def line(self, text: str) -> None:
        self._compiled += "/" in text and not text.startswith("go: ")
        self._working(f"building {self._name} with Go, minutes but once: {self._compiled} packages")


def files(definitions: Definitions, working: Working) -> list[Path]:
    """The files of a module's definitions, downloaded if they are not there, and what they are expected to be."""
    module = definitions.module
    working(f"fetching {module}")
    download = ["go", "mod", "download", "-json", module]
    printed = "\n".join(command(download, lambda _: working(f"fetching {module}"), cwd=Path("/")))
    answer = json.loads(printed[printed.index("{") :])  # Go may speak of a toolchain first
    if answer["Sum"] != definitions.sum:
        wrong = f"{module} is {answer['Sum']}, not {definitions.sum}"
        raise PhaseError(wrong, "see where GOPROXY fetches modules from")
    matching = sorted(Path(answer["Dir"]).glob(definitions.files))
    if not matching:
        raise PhaseError(f"{module} has no {definitions.files}", "restore tools/control_plane.py from git")
    return matching


def _stages(root: Path, working: Working) -> Iterator[str]:
    """What kwok does with nodes and pods: its own stages, as its module holds them."""
    listed = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    source = Path(command(listed, working, cwd=root / "tools" / "kwok")[-1])
    for part in STAGES:
        for file in sorted((source / "kustomize" / "stage" / part).glob("*.yaml")):
            if file.name != "kustomization.yaml":
                yield file.read_text(encoding="utf-8")
