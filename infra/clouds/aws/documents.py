"""IAM policy documents as JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pulumi import Output

VERSION = "2012-10-17"  # of the policy language, the newest one


def policy(*statements: Mapping[str, Any]) -> Output[str]:
    """A document whose statements may hold outputs."""
    return Output.json_dumps({"Version": VERSION, "Statement": list(statements)})


def assumed_by(service: str, *more: str) -> str:
    """The trust policy of a role that only this service may take on. more: actions beside that."""
    action = ["sts:AssumeRole", *more] if more else "sts:AssumeRole"
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": action}
    return json.dumps({"Version": VERSION, "Statement": [trust]})
