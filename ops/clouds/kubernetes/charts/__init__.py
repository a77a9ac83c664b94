"""What a stack's charts are, as their publishers give them out: `gpufleet catalog charts`."""
