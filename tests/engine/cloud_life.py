"""The command `gpufleet` on a project whose cloud is a stand-in: real engine, real SDK, one file for a cloud."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud_provider.store import Row, Store
from engine_runner import EngineRunner


@dataclass(frozen=True)
class Life:
    """One stack, from its file to its end. gone: whether its cloud merely goes on showing a resource."""

    pulumi: EngineRunner
    stack: str
    store: Store
    gone: Callable[[Row], bool]

    @property
    def root(self) -> Path:
        return self.pulumi.root

    def __call__(self, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **environment) as command:
            printed, complained = command.communicate()
        assert not (check and command.returncode), printed + complained
        return subprocess.CompletedProcess(command.args, command.returncode, printed, complained)

    def train(self, job: str) -> dict[str, Any]:
        """Runs a job to its end and returns its result."""
        with self._run(["train", job, "--stack", self.stack, "--json"]) as command:
            printed, complained = command.communicate()
        assert not command.returncode, complained
        return json.loads(printed)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return self._run([arguments[0], self.stack, *arguments[1:]], **environment)

    def _run(self, words: list[str], **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ops", *words],
            cwd=self.root,
            env={**self.pulumi.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def up(self) -> dict[str, str]:
        """Brings the stack up without waiting for nodes; what each phase said."""
        document = json.loads(self("up", "--yes", "--no-wait", "--json").stdout)
        return {phase["phase"]: phase["note"] for phase in document["phases"]}

    def orphaned(self) -> list[str]:
        return json.loads(self("sweep", "--json").stdout)["strays"]

    def forget(self) -> None:
        """Loses the engine's state altogether."""
        for file in self.root.glob(".gpufleet/pulumi/.pulumi/stacks/gpufleet/*"):
            file.unlink()

    def alive(self) -> list[Row]:
        """What exists, without what the cloud merely goes on showing."""
        return [row for row in self.store.rows() if not self.gone(row)]

    def duplicates(self) -> list[str]:
        """Resources of the program that exist more than once."""
        counts = Counter(row.urn for row in self.alive() if row.urn)
        return [urn for urn, number in counts.items() if number > 1]

    def orphans(self) -> list[str]:
        """What exists while the engine knows neither it nor who made it."""
        known, rows = {resource.get("id") for resource in self.pulumi.resources(self.stack)}, self.alive()
        while theirs := {row.id for row in rows if row.maker in known} - known:  # a fleet's instance, its disk
            known |= theirs
        return [f"{row.type} {row.id}" for row in rows if row.id not in known]
