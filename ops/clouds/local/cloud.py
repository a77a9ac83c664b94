"""The nodes on this computer: their provider finds existing ones by itself, so nothing has to be recovered."""

from __future__ import annotations

from pathlib import Path

from infra.clouds.local.nodes import sweep
from infra.clouds.local.nodes.errors import LocalError
from infra.plan.model import Plan
from ops.clouds import base
from ops.console.phases import Phase
from ops.engine import state_repair
from ops.engine.state_repair import State
from ops.errors import CommandError


class Cloud(base.Cloud):
    """This computer."""

    plan: Plan

    def renewable(self, group: str) -> None:
        raise CommandError(f"--renew {group}: `up` recreates lost nodes of this computer by itself", code=2)

    def orphans(self, state: State) -> list[str]:
        """What exists of the stack's site while the engine's state is empty."""
        return [] if any(state_repair.ids(state).values()) else sweep.left_behind(self._site)

    def clear(self, state: State, phase: Phase) -> list[str]:
        try:
            return sweep.remove(self._site) if self.orphans(state) else []
        except (LocalError, OSError) as error:
            raise CommandError(str(error)) from None

    @property
    def _site(self) -> Path:
        return self.project.site(self.plan.stack)
