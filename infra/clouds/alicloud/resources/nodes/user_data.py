"""What a node of Alibaba Cloud runs when it starts: it fetches the bundle by a signed request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi import Input

from infra.clouds.base.resources import boot

SCRIPT = boot.script(Path(__file__).parent / "boot.sh")


@dataclass(frozen=True, kw_only=True)
class BootData(boot.BootData):
    """role: the RAM role by whose passing credentials a node fetches the bundle."""

    role: Input[str]

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "role": self.role}
