"""Policy rules on what keeps data at AWS."""
