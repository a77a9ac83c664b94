"""The cluster: what a stack file asks for, decided as data and declared with Pulumi."""
