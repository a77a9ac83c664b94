"""AWS: discovery by tags, recovery of killed deployments, orphans, checks of the account."""
