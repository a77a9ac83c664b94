"""What is AWS's own in the day-by-day commands: discovery by tags, recovery of killed deployments, the sweep."""
