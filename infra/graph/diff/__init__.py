"""Two plans of one stack, held against each other: what is added, changed, replaced and removed, and what it costs."""

from infra.graph.diff.compare import difference
from infra.graph.diff.text import text

__all__ = ["difference", "text"]
