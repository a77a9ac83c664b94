"""Checks of the plan of a tenant of a Kubernetes cluster."""
