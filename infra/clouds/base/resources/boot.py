"""What a node runs when it starts: a node that a fleet starts at three in the morning has no operator.

boot_head.sh and boot_tail.sh are alike on all clouds; between them stands how a node of a cloud fetches the bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi import Input, Output

HEAD, TAIL = ((Path(__file__).parent / f"boot_{part}.sh").read_text() for part in ("head", "tail"))


def script(fetching: Path) -> str:
    """The whole script. fetching: the file with a cloud's part of it."""
    return HEAD + fetching.read_text() + TAIL


@dataclass(frozen=True, kw_only=True)
class BootData:
    """The boot data of a node. handover: of the cluster, without nodes. bucket, key, sha256: of the playbook bundle."""

    group: str
    handover: Input[Mapping[str, Any]]
    bucket: Input[str]
    key: Input[str]
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """As the script reads it."""
        return {
            "group": self.group,
            "handover": self.handover,
            "bundle": {"bucket": self.bucket, "key": self.key, "sha256": self.sha256},
        }


def user_data(script: str, boot: BootData) -> Output[str]:
    """The script, as text; it holds no secret: the node's role lets it fetch what it needs."""
    data = Output.json_dumps(boot.to_json(), sort_keys=True)
    return data.apply(lambda text: script.replace("@BOOT@", text))
