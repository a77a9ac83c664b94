"""A tenant of a Kubernetes cluster, decided: every object that will be applied, as plain data."""
