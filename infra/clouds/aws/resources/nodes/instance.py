"""One machine that stays itself: the login machine, or a cluster of one.

Source: terraform-provider-aws, aws_instance: read back, the template's `$Default` is the version that the machine was
started with, and the template's user data are the machine's own. Both would look like changes to undo, the first by
another machine, the second by a stop.
"""

from __future__ import annotations

from collections.abc import Mapping

from pulumi import Input, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.resources.nodes.launch_template import NEWEST


def machine(
    name: str, kind: str, template_id: Input[str], tags: Mapping[str, str], opts: ResourceOptions
) -> ec2.Instance:
    """An instance of the template. A newer version of it is for the next machine, and replaces nothing.

    kind: the instance type, which changes in place.
    """
    stays = ResourceOptions.merge(opts, ResourceOptions(ignore_changes=["launchTemplate", "userData"]))
    return ec2.Instance(
        name, instance_type=kind, launch_template={"id": template_id, "version": NEWEST}, tags=tags, opts=stays
    )
