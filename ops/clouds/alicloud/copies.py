"""The copies of `gpufleet copy`: another stack's bucket on AWS into an OSS bucket of this one, with rclone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from infra.clouds.alicloud.plan import summary
from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.handover import Copied, Handover
from ops.console.phases import Phases
from ops.engine import processes
from ops.errors import CommandError
from ops.project import Project

Document = dict[str, Any]

# rclone's pages "Amazon S3" (providers AWS and Alibaba; a check for OSS's bucket would change its ACL) and "Environment
# variables" (a remote `from` is RCLONE_CONFIG_FROM_…). OSS needs keys of its own; those of AWS come as for AWS's tools.
FROM = {"TYPE": "s3", "PROVIDER": "AWS", "ENV_AUTH": "true"}
TO = {"TYPE": "s3", "PROVIDER": "Alibaba", "NO_CHECK_BUCKET": "true"}
KEYS = {
    "ACCESS_KEY_ID": "ALIBABA_CLOUD_ACCESS_KEY_ID",
    "SECRET_ACCESS_KEY": "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "SESSION_TOKEN": "ALIBABA_CLOUD_SECURITY_TOKEN",
}
AWS_AUTHORITIES = "AWS_CA_BUNDLE"  # rclone of Debian 12 does not start with it, and has a variable of its own
OPTIONS = ["--checksum", "--immutable", "--transfers", "16"]


def copy(project: Project, plan: AlicloudPlan, handover: Handover, phases: Phases) -> Document:
    """The copies of a handover, one after another: source and target of each, and the price of keeping them. Raises
    CommandError."""
    for copy_plan in plan.copies:
        phases.note(f"price       {summary.copy(copy_plan)}")
    finished: list[Document] = []
    for copied in handover.copies:
        source, target = endpoints(handover, copied)
        phases.command(" ".join(["rclone copy", *OPTIONS, source, target]))
        with phases.phase("copy") as phase:
            log = project.log(plan.stack, "copy")
            code = processes.run(
                ["rclone", "copy", *OPTIONS, source, target],
                env=environment(handover, copied, os.environ),
                cwd=project.root,
                log=log,
                on_line=phase.say,
            )
            if code:
                raise CommandError(*processes.tail(log), f"the whole log: {log}; re-run to resume")
            phase.say(f"{copied.bucket} → {copied.to}")
        finished.append({"from": source, "to": target})
    return {"copied": finished, "usd_per_month": sum(copy_plan.usd_per_month for copy_plan in plan.copies)}


def endpoints(handover: Handover, copied: Copied) -> tuple[str, str]:
    """Source and target as rclone's paths. Raises CommandError while the other stack is not up."""
    if not copied.bucket:
        remedy = f"`gpufleet up {copied.stack}`, then `gpufleet up {handover.stack}`"
        raise CommandError(f"{copied.stack} does not export that bucket yet; run {remedy}")
    bucket = next(storage.source for storage in handover.storage if storage.name == copied.to)
    below = f"/{copied.prefix}" if copied.prefix else ""
    return f"from:{copied.bucket}{below}", f"to:{bucket}{below}"


def environment(handover: Handover, copied: Copied, caller: Mapping[str, str]) -> dict[str, str]:
    """rclone's two remotes, in the environment alone: no file and no process list shows a key.

    What the caller has set of them takes precedence, such as RCLONE_CONFIG_TO_ENDPOINT for an accelerated or internal
    one. Raises CommandError without keys of Alibaba Cloud.
    """
    keys = {name: caller[variable] for name, variable in KEYS.items() if variable in caller}
    if not {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY"} <= keys.keys():
        raise CommandError(f"no credentials for OSS: set {KEYS['ACCESS_KEY_ID']} and {KEYS['SECRET_ACCESS_KEY']}")
    remotes = {
        "FROM": {**FROM, "REGION": copied.region},
        "TO": {**TO, "ENDPOINT": f"oss-{handover.region}.aliyuncs.com", **keys},
    }
    settings = {f"RCLONE_CONFIG_{end}_{key}": value for end, pairs in remotes.items() for key, value in pairs.items()}
    variables = {**settings, **caller}
    if bundle := variables.pop(AWS_AUTHORITIES, None):
        variables.setdefault("RCLONE_CA_CERT", bundle)
    return variables
