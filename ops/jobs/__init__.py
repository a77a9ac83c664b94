"""Runs of training jobs: runners, workers, rendezvous, results, progress."""
