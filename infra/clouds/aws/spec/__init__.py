"""The stack file of `cloud: aws`."""
