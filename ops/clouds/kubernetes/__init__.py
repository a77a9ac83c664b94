"""Commands on tenants of Kubernetes clusters."""
