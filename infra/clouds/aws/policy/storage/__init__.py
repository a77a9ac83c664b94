"""Policy rules on storage at AWS."""
