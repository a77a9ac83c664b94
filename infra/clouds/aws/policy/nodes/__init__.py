"""Policy rules on nodes at AWS."""
