"""The stack file of a tenant of a Kubernetes cluster."""
