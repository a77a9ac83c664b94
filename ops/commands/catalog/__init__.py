"""`gpufleet catalog`: the tables of instance types and GPUs, and the lock of Helm charts."""
