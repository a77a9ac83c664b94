"""Launching ranks, and going on when ranks or nodes are lost."""
