"""Commands on nodes of this computer."""
