"""A real Kubernetes control plane on this computer, nodes with GPUs that are only played, and the engine's provider.

`control_plane.py` starts etcd, the API server, the controllers, the scheduler and kwok that set-up has built;
`bin/pulumi-resource-kubernetes` is the provider that the engine finds on PATH. It sends objects to the API server as
they are, with server-side apply and strict fields: what is refused is refused by Kubernetes itself. Helm charts are
only recorded: their definitions of custom resources are there from the start, and nothing of them runs.
"""
