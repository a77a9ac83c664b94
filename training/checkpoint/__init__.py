"""Checkpoints: sharded, sealed by a manifest, written beside the step loop, uploaded where the job asks for it."""
