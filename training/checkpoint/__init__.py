"""Checkpoints: one file a rank and a manifest, written while the step loop goes on, uploaded to an object store."""
