"""Runs of training jobs: launchers, rendezvous, records, progress."""
