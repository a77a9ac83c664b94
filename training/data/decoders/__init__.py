"""Decoders of images other than Pillow."""
