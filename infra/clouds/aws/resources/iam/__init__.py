"""Who may do what at AWS: the nodes' role, and policy documents."""
