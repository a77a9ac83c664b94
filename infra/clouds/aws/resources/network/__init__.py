"""Network, security groups and endpoints."""
