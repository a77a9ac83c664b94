"""The controllers behind a TrainJob: Trainer makes a JobSet of it, and JobSet the Jobs whose pods are scheduled.

The drill of them puts them beside the tests' control plane. They are built from tools/controllers once a version, which
takes a quarter of an hour on two cores, and kept in the user's cache with their admission webhooks, which come from
their own modules. The folder's path is written to `.gpufleet/controllers`, one line.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from tools import control_plane
from tools.control_plane import DEFINITIONS, Working, compiled, files, found_or_built, whole

PROGRAMS = {
    "jobset": ("controllers", "sigs.k8s.io/jobset"),
    "trainer": ("controllers", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"),
}
MODULES = {
    name: next(each for each in DEFINITIONS if each.module.startswith(module))
    for name, module in (("jobset", "sigs.k8s.io/jobset@"), ("trainer", "github.com/kubeflow/trainer/v2@"))
}
WEBHOOKS = {
    "jobset": replace(MODULES["jobset"], files="config/components/webhook/manifests.yaml"),
    "trainer": replace(MODULES["trainer"], files="manifests/base/webhook/manifests.yaml"),
}


def controllers_phase(root: Path, working: Working) -> str:
    """Finds or builds them. Raises SkippedError where there is no Go to build them with; their drill then says so."""
    folder = cache(root)
    what = " and ".join(f"{name} {each.module.rpartition('@')[2]}" for name, each in MODULES.items())
    return found_or_built(root, "controllers", folder, what, lambda: _build(root, folder, working), working)


def cache(root: Path) -> Path:
    """Where the programs are kept; other modules are another folder."""
    recipe = hashlib.sha256(json.dumps([PROGRAMS, [asdict(each) for each in WEBHOOKS.values()]]).encode())
    recipe.update((root / "tools" / "controllers" / "go.sum").read_bytes())
    return control_plane.cache(root).parent / f"controllers-{recipe.hexdigest()[:8]}"


def _build(root: Path, folder: Path, working: Working) -> None:
    with whole(folder) as new:
        compiled(root, new, PROGRAMS, working)
        for name, webhooks in WEBHOOKS.items():
            (file,) = files(webhooks, working)
            shutil.copyfile(file, new / f"{name}-webhooks.yaml")
