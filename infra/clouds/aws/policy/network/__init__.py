"""Policy rules on networks of AWS."""
