"""What may import what: the walls between packages, and the layers of each package from the bottom up.

Walls hold for every import, also one inside a function; layers and circles are of imports that run when a file loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.structure.imports import Graph, file_graph, folder_graph, imports, package_files

# A file belongs to the longest path that it is below; an import may lead to its own layer or to a lower one.
LAYERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "infra": (
        ("infra/__init__.py", "infra/printable.py", "infra/suggest.py", "infra/gc_pause.py", "infra/registry.py"),
        ("infra/catalog", "infra/spec"),
        ("infra/plan",),
        ("infra/checks", "infra/policy", "infra/handover.py"),
        ("infra/evaluate.py",),
        ("infra/graph",),
        ("infra/clouds",),
        ("infra/__main__.py", "infra/policy_pack"),
    ),
    "ops": (
        ("ops/__init__.py", "ops/errors.py", "ops/clock.py", "ops/project.py", "ops/untrusted.py"),
        ("ops/console",),
        ("ops/engine",),
        ("ops/nodes",),
        ("ops/jobs",),
        ("ops/clouds",),
        ("ops/stack.py",),
        ("ops/commands",),
        ("ops/demo.py", "ops/__main__.py"),
    ),
    "training": (
        ("training/__init__.py", "training/strict.py", "training/secret.py", "training/atomic.py"),
        ("training/config", "training/allocator.py"),
        ("training/precision.py", "training/compiled.py", "training/data", "training/optim"),
        ("training/models", "training/parallel"),
        ("training/checkpoint", "training/metrics", "training/autotune.py", "training/evaluation.py"),
        ("training/elastic",),
        ("training/build.py",),
        ("training/loop.py",),
        ("training/search", "training/bench"),
        ("training/__main__.py",),
    ),
}

# A cloud whose folder others may use: EKS and ACK declare the tenant of a Kubernetes cluster.
SHARED_CLOUDS = ("kubernetes",)


@dataclass(frozen=True)
class Wall:
    """Files that must not import something, but for those that are allowed to; all three are regular expressions."""

    files: str
    imported: str
    allowed: str = "^$"


WALLS = (
    # The engine's SDK: where resources are declared, and in the few files that run or record such a program.
    Wall(
        r"",
        r"pulumi(_\w+)?(\.|$)",
        r"infra/(clouds/\w+/resources(/|\.py)|clouds/(base/|bundle|tags|dependencies)|clouds/local/provider\.py"
        r"|graph/program\.py|policy_pack/|__main__\.py)",
    ),
    Wall(r"", r"pulumi_aws(\.|$)", r"infra/clouds/aws/resources"),
    Wall(r"", r"pulumi_alicloud(\.|$)", r"infra/clouds/alicloud/resources"),
    Wall(r"", r"pulumi_kubernetes(\.|$)", r"infra/clouds/kubernetes/resources"),
    # SDKs of accounts and clusters; training/checkpoint/remote.py speaks S3's protocol to whatever store there is.
    Wall(r"", r"boto(3|core)(\.|$)", r"(ops/clouds/aws/|training/checkpoint/remote\.py)"),
    Wall(r"", r"alibabacloud_", r"ops/clouds/alicloud/"),
    Wall(r"", r"kubernetes(\.|$)", r"ops/clouds/kubernetes/"),
    # Stack file, plan, checks and tables know no cloud and no drawing of a plan.
    Wall(r"infra/(spec|plan|checks|catalog)/", r"infra\.(graph|policy|policy_pack|clouds)(\.|$)"),
    Wall(r"training/", r"(infra|ops)(\.|$)"),
    Wall(r"infra/", r"(ops|training)(\.|$)"),
)


def wall_breaches(root: Path) -> Iterator[str]:
    """Imports through a wall, as `file:line: name`."""
    for file in package_files(root):
        for imported in imports(root / file):
            if any(_breached(wall, file, imported.name) for wall in WALLS) or _other_cloud(root, file, imported.name):
                yield f"{file}:{imported.line}: {imported.name}"


def _breached(wall: Wall, file: str, imported: str) -> bool:
    inside = re.match(wall.files, file) and not re.match(wall.allowed, file)
    return bool(inside and re.match(wall.imported, imported))


def _other_cloud(root: Path, file: str, imported: str) -> bool:
    """Whether a cloud's folder imports another cloud's."""
    importer = re.match(r"(?:infra|ops)/clouds/(\w+)/", file)
    target = re.match(r"(?:infra|ops)\.clouds\.(\w+)", imported)
    if not importer or not target:
        return False
    folders = {path.name for path in (root / "infra" / "clouds").iterdir() if path.is_dir()}
    return target[1] in folders - {importer[1], *SHARED_CLOUDS, "base"}


def upward_imports(root: Path) -> Iterator[str]:
    """Imports from a lower layer into a higher one, between folders, as `folder -> folder`."""
    for package, layers in LAYERS.items():
        for importer, targets in sorted(package_folders(root, package).items()):
            for target in sorted(targets):
                if layer(importer, layers) < layer(target, layers):
                    yield f"{importer} -> {target}"


def package_folders(root: Path, package: str) -> Graph:
    """The imports between the folders of one package, of what runs when a file loads."""
    return folder_graph(file_graph(root, package_files(root, [package])))


def layer(path: str, layers: tuple[tuple[str, ...], ...]) -> int:
    """The number of the layer that a file or a folder is in, the lowest is 0. Raises LookupError for none."""
    fitting = [
        (len(prefix), number)
        for number, prefixes in enumerate(layers)
        for prefix in prefixes
        if path == prefix or path.startswith(f"{prefix}/")
    ]
    if not fitting:
        raise LookupError(f"{path} has no layer: name it in LAYERS of tools/structure/walls.py")
    return max(fitting)[1]
