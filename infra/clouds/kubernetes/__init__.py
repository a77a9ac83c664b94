"""Objects of Kubernetes, declared: for a cluster that is there already, and for those that EKS and ACK make."""
