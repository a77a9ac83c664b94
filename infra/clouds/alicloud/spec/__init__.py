"""The stack file of `cloud: alicloud`."""
