"""What a run may do in the stack's buckets, and who gives it that: the storage sessions of nodes.

The places of a run are those that its job writes to: `checkpoint.upload`. What it reads besides lies on mounts.
"""

from __future__ import annotations

import json
import re

from infra.handover import Handover
from ops.errors import CommandError

WITH_GRANT = "/usr/local/lib/gpufleet/storage_sessions/with_grant.py"  # of the role storage_sessions
RUNNING = "/run/gpufleet/storage.d"  # where it keeps the grants of runs
PREFIX = re.compile(r"([A-Za-z0-9_=+@:,-][A-Za-z0-9._=+@:,-]*/)+")  # as the service on the nodes takes it
TENANTS = "tenants/"  # below it each tenant has a prefix
MOST_LENGTH = 512


def of_run(handover: Handover, upload: str | None) -> str:
    """The grant of a run that uploads to a bucket of the stack, as JSON; empty for others, which bring credentials.

    upload: the job's `checkpoint.upload`. Raises CommandError for a prefix that cannot be one run's own.
    """
    bucket, _, rest = (upload or "").removeprefix("s3://").partition("/")
    if not handover.storage_role or bucket not in [item.source for item in handover.storage if item.kind == "bucket"]:
        return ""
    prefix = f"{rest.strip('/')}/"
    if prefix == "/":
        raise CommandError(f"checkpoint.upload: {upload} needs a prefix: a run may change all that is below it", code=2)
    if not PREFIX.fullmatch(prefix) or len(prefix) > MOST_LENGTH:
        raise CommandError(
            f"checkpoint.upload: {upload}: a prefix has letters, digits and . _ = + @ : , - between its /", code=2
        )
    if prefix.startswith(TENANTS):
        raise CommandError(f"checkpoint.upload: {upload}: what is below {TENANTS} belongs to tenants", code=2)
    return json.dumps({"places": [{"bucket": bucket, "prefix": prefix, "mode": "upload"}]})


def command(login: str, run: str, grant: str) -> list[str]:
    """What root runs on a node before a program of a run: the grant holds until the program ends."""
    return ["/usr/bin/python3", "-E", "-s", "-B", WITH_GRANT, RUNNING, login, run, grant]
