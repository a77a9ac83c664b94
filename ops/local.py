"""The nodes on this computer: the provider finds what it made by itself, so nothing has to be recovered."""

from __future__ import annotations

from pathlib import Path

from infra.clouds.local import sweep
from infra.clouds.local.failure import LocalError
from infra.plan.plan import Plan
from ops import clouds, recovery
from ops.failure import Failure
from ops.phases import Phase
from ops.recovery import State


class Cloud(clouds.Cloud):
    """This computer."""

    plan: Plan

    def renewable(self, group: str) -> None:
        raise Failure(f"--renew {group}: `up` makes lost nodes of this computer again by itself", code=2)

    def strays(self, state: State) -> list[str]:
        """What the stack's site holds while the engine knows nothing of it."""
        return [] if any(recovery.ids(state).values()) else sweep.left_behind(self._site)

    def clear(self, state: State, phase: Phase) -> list[str]:
        try:
            return sweep.remove(self._site) if self.strays(state) else []
        except (LocalError, OSError) as error:
            raise Failure(str(error)) from None

    @property
    def _site(self) -> Path:
        return self.project.site(self.plan.stack)
