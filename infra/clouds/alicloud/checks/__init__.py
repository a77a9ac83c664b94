"""Checks of Alibaba Cloud plans."""
