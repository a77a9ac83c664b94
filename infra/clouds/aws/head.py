"""One machine that stays itself: the login machine, or a cluster of one."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi import Input, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.launch_template import NEWEST


def machine(name: str, template_id: Input[str], tags: Mapping[str, str], opts: ResourceOptions) -> ec2.Instance:
    """An instance of the template. A newer version of it is for the next machine, and replaces nothing."""
    return ec2.Instance(name, launch_template={"id": template_id, "version": NEWEST}, tags=tags, opts=opts)
