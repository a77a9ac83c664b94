"""The objects of a tenant; the only part that imports Pulumi."""
