"""Results of AWS data sources in a rendered plan, where only the cloud knows the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def parameter(args: Mapping[str, Any]) -> dict[str, Any]:
    """A machine image reads as the name under which AWS publishes it, as EC2 itself would take it."""
    return {**args, "insecureValue": f"resolve:ssm:{args['name']}"}


INVOKES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "aws:ssm/getParameter:getParameter": parameter,
}
