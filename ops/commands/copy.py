"""`gpufleet copy`: what another stack keeps, brought into this one's bucket by rclone.

It runs here, by a person's own credentials of both clouds: no node ever holds the keys of two. Checkpoints are folders
that never change and end with a manifest, so a copy that breaks off is refused by whoever loads it, and goes on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.handover import Copied, Handover
from ops import stack as stacks
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Stack, write_json
from ops.engine import processes
from ops.errors import CommandError
from ops.project import Project

Document = dict[str, Any]

# rclone's pages "Amazon S3" (providers AWS and Alibaba; a check for OSS's bucket would change its ACL) and "Environment
# variables" (a remote `from` is RCLONE_CONFIG_FROM_…). OSS takes keys of its own; those of AWS come as AWS has them.
FROM = {"TYPE": "s3", "PROVIDER": "AWS", "ENV_AUTH": "true"}
TO = {"TYPE": "s3", "PROVIDER": "Alibaba", "NO_CHECK_BUCKET": "true"}
KEYS = {
    "ACCESS_KEY_ID": "ALIBABA_CLOUD_ACCESS_KEY_ID",
    "SECRET_ACCESS_KEY": "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "SESSION_TOKEN": "ALIBABA_CLOUD_SECURITY_TOKEN",
}
AWS_AUTHORITIES = "AWS_CA_BUNDLE"  # rclone of Debian 12 cannot begin with it, and has a word of its own for it
OPTIONS = ["--checksum", "--immutable", "--transfers", "16"]


def command(stack: Stack, as_json: Json = False) -> None:
    """Copy other stacks' buckets into this one's (`copies`), with rclone and your own credentials."""
    document = copy(Project.find(), stack, Phases(Screen(), quiet=as_json))
    if as_json:
        write_json(document)


def copy(project: Project, stack: str, phases: Phases) -> Document:
    """The document of `--json`. Raises CommandError: when there is nothing to copy, nothing to copy with, or it
    fails."""
    told = stacks.handover(project, stack)
    if not told.copies:
        raise CommandError(f"cluster.copies: is empty, so {stack} copies nothing")
    if shutil.which("rclone") is None:
        raise CommandError("rclone is not on PATH: https://rclone.org/install tells how to get it")
    decided = stacks.decide(stacks.read(project, stack))
    assert isinstance(decided, AlicloudPlan)  # no other has copies
    for each in decided.copies:
        phases.note(f"price       {each.summary}")
    done = []
    for one in told.copies:
        source, target = places(told, one)
        phases.command(" ".join(["rclone copy", *OPTIONS, source, target]))
        with phases.phase("copy") as phase:
            log = project.log(stack, "copy")
            code = processes.run(
                ["rclone", "copy", *OPTIONS, source, target],
                env=environment(told, one, os.environ),
                cwd=project.root,
                log=log,
                on_line=phase.say,
            )
            if code:
                raise CommandError(*processes.tail(log), f"the whole log: {log}; the same command goes on")
            phase.say(f"{one.bucket} → {one.to}")
        done.append({"from": source, "to": target})
    return {"stack": stack, "copied": done, "usd_per_month": sum(each.usd_per_month for each in decided.copies)}


def places(told: Handover, one: Copied) -> tuple[str, str]:
    """Both ends in rclone's words. Raises CommandError while the other stack is not up."""
    if not one.bucket:
        again = f"`gpufleet up {one.stack}`, then `gpufleet up {told.stack}`, which asks it anew"
        raise CommandError(f"{one.stack} has told of no such bucket yet: {again}")
    bucket = next(storage.source for storage in told.storage if storage.name == one.to)
    below = f"/{one.prefix}" if one.prefix else ""
    return f"from:{one.bucket}{below}", f"to:{bucket}{below}"


def environment(told: Handover, one: Copied, own: Mapping[str, str]) -> dict[str, str]:
    """rclone's two remotes, in the environment alone: neither a file nor a process list holds a key.

    What the caller has set of them wins, such as RCLONE_CONFIG_TO_ENDPOINT: an accelerated or an internal one, say.
    Raises CommandError without keys of Alibaba Cloud.
    """
    keys = {name: own[variable] for name, variable in KEYS.items() if variable in own}
    if not {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY"} <= keys.keys():
        raise CommandError(f"no credentials for OSS: set {KEYS['ACCESS_KEY_ID']} and {KEYS['SECRET_ACCESS_KEY']}")
    remotes = {
        "FROM": {**FROM, "REGION": one.region},
        "TO": {**TO, "ENDPOINT": f"oss-{told.region}.aliyuncs.com", **keys},
    }
    settings = {f"RCLONE_CONFIG_{end}_{key}": value for end, pairs in remotes.items() for key, value in pairs.items()}
    wanted = {**settings, **own}
    if bundle := wanted.pop(AWS_AUTHORITIES, None):
        wanted.setdefault("RCLONE_CA_CERT", bundle)
    return wanted
