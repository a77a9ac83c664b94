"""Policy rules on who may do what at AWS."""
