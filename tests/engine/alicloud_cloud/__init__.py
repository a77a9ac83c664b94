"""A stand-in for Alibaba Cloud on this computer, so that the real Pulumi engine runs without an account.

What it knows of each resource type stands in `kinds.py`, what it refuses in `refusals.py`; the rest is shared with the
other clouds (`cloud_provider`). Names and shapes of arguments are held against the types of pulumi_alicloud; values are
not, but for the refusals.
"""
