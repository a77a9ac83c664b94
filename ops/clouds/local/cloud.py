"""The nodes on this computer: the provider finds what it made by itself, so nothing has to be recovered."""

from __future__ import annotations

from pathlib import Path

from infra.clouds.local import sweep
from infra.clouds.local.errors import LocalError
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
        raise CommandError(f"--renew {group}: `up` makes lost nodes of this computer again by itself", code=2)

    def strays(self, state: State) -> list[str]:
        """What the stack's site holds while the engine knows nothing of it."""
        return [] if any(state_repair.ids(state).values()) else sweep.left_behind(self._site)

    def clear(self, state: State, phase: Phase) -> list[str]:
        try:
            return sweep.remove(self._site) if self.strays(state) else []
        except (LocalError, OSError) as error:
            raise CommandError(str(error)) from None

    @property
    def _site(self) -> Path:
        return self.project.site(self.plan.stack)
