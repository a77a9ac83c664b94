"""Order of creation through Pulumi values: an output that resolves only when its prerequisites exist.

A machine that starts before its route, its firewall or its role's policy is there boots without network access. A
resource that takes such an id waits for all of it, and no component has to know the others' order.
"""

from __future__ import annotations

from typing import Any

from pulumi import Input, Output


def once(value: Input[str], *needed: Input[Any]) -> Output[str]:
    """The value, known only when everything in `needed` is."""
    return Output.all(value, *needed).apply(lambda all_of_it: all_of_it[0])
