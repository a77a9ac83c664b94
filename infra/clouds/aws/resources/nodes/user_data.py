"""What a node runs when it starts: a node that a fleet starts at three in the morning has no operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi import Input, Output

SCRIPT = (Path(__file__).parent / "boot.sh").read_text()


@dataclass(frozen=True, kw_only=True)
class Boot:
    """What a node is told. handover: of the cluster, without nodes. bucket, key, sha256: of the playbook bundle."""

    group: str
    handover: Input[Mapping[str, Any]]
    bucket: Input[str]
    key: Input[str]
    sha256: str


def user_data(boot: Boot) -> Output[str]:
    """The script, as text; it holds no secret: the node's role lets it fetch what it needs."""
    told = Output.json_dumps(
        {
            "group": boot.group,
            "handover": boot.handover,
            "bundle": {"bucket": boot.bucket, "key": boot.key, "sha256": boot.sha256},
        },
        sort_keys=True,
    )
    return told.apply(lambda text: SCRIPT.replace("@BOOT@", text))
