"""Existing hosts."""
