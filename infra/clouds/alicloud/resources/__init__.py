"""The resources of an Alibaba Cloud plan; the only part that imports Pulumi."""
