"""A stand-in for AWS on this computer, so that the real Pulumi engine and the real boto3 run without an account.

`bin/pulumi-resource-aws` is the provider that the engine finds on PATH; `front.serving(file)` answers boto3. Both keep
one cloud, a SQLite file (`store.py`). What it knows of each resource type stands in `kinds*.py`, what it refuses in
`refusals.py`; the rest is `cloud_provider`.

It checks names and shapes of arguments against the types of pulumi_aws, not the values: what AWS itself would say to a
value is not proven here.
"""
