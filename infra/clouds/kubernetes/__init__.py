"""Objects of Kubernetes, declared for a cluster that is there already."""
