"""Nodes: launch templates, fleets, scaling groups, instances."""
