"""Checkpoints: one file a rank and a manifest, written while the step loop continues, uploaded to an object store."""
