"""The cluster: a stack file's spec, planned as plain data and declared with Pulumi."""
