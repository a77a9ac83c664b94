"""The resources of an AWS plan; the only part that imports Pulumi."""
