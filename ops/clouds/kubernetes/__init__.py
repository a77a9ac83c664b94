"""Tenants of Kubernetes clusters."""
