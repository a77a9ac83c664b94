"""Objects of Kubernetes, declared for a cluster that is there already, or that a stack of EKS or ACK makes."""
