"""Checks of AWS plans."""
