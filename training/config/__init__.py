"""A job file as frozen, checked types. Loads no torch."""
