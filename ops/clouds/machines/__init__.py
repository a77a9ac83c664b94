"""Commands on hosts that are there already."""
