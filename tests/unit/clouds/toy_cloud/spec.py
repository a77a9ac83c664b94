"""The stack file of `cloud: toy`."""

from __future__ import annotations

from typing import Literal

from infra.spec.cluster import Cluster
from infra.spec.fields import Count, Flag, Name


class ToySpec(Cluster):
    """Boxes in a row. lids: whether they are closed."""

    cloud: Literal["toy"]
    name: Name
    boxes: Count
    lids: Flag = True
