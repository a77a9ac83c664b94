"""The proofs of the repository's structure, and the picture of its imports."""
