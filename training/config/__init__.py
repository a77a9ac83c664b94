"""The job file as frozen, validated dataclasses. Imports no torch."""
