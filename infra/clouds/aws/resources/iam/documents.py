"""IAM policy documents as JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pulumi import Input, Output

VERSION = "2012-10-17"  # of the policy language, the newest one


def policy(*statements: Mapping[str, Any]) -> Output[str]:
    """A document whose statements may hold outputs."""
    return Output.json_dumps({"Version": VERSION, "Statement": list(statements)})


def assumed_for(owner: Input[str], service: str, sources: Input[str]) -> Output[str]:
    """The trust policy of a role that a service may take on for this account and these sources alone.

    Every account's resources reach the same service (IAM User Guide, "The confused deputy problem"). owner: the
    account's number. sources: ARNs, as a pattern where what it is for needs the role first.
    """
    return policy(
        {
            "Effect": "Allow",
            "Principal": {"Service": service},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:SourceAccount": owner}, "ArnLike": {"aws:SourceArn": sources}},
        }
    )


def assumed_by_role(role: Input[str]) -> Output[str]:
    """The trust policy of a role that one other role, by its ARN, may take on."""
    return policy({"Effect": "Allow", "Principal": {"AWS": role}, "Action": "sts:AssumeRole"})


def assumed_by(service: str) -> str:
    """The trust policy of a role that only this service may take on, which does not say for whom it does."""
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": VERSION, "Statement": [trust]})
