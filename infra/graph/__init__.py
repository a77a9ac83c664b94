"""What would be declared: the program rendered in one process, without engine or credentials."""

from infra.graph.document import canonical, plan_document, resources
from infra.graph.program import Graph, RenderedResource, record, render

__all__ = ["Graph", "RenderedResource", "canonical", "plan_document", "record", "render", "resources"]
