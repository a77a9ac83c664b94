"""Buckets, Lustre and their encryption."""
