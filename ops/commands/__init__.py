"""One file a sub-command of `gpufleet`."""
