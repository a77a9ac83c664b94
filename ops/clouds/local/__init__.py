"""Nodes on this computer."""
