"""What a node of AWS runs when it starts: it fetches the bundle by its role."""

from __future__ import annotations

from pathlib import Path

from infra.clouds.base.resources import boot

SCRIPT = boot.script(Path(__file__).parent / "boot.sh")
