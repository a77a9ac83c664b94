"""The `gpufleet` command: what a person does day by day with a cluster."""
