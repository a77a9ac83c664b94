"""Decoders of image files: Pillow, NVIDIA DALI."""
