"""A file system of FSx for Lustre, and the bucket that it shows.

Source: FSx for Lustre User Guide, "Deployment and storage class options", "Overview of data repositories" and "Working
with EFA-enabled file systems".
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import fsx

from infra.clouds.aws.plan.model import LustrePlan

LUSTRE_VERSION = "2.15"  # of the server: EFA and the metadata configuration need it
CHANGES = ["NEW", "CHANGED", "DELETED"]  # what goes from the bucket to the file system, and back


@dataclass(frozen=True, kw_only=True)
class LustreArgs:
    """What a file system needs. bucket: the name of the bucket to show below `/`, None without one."""

    plan: LustrePlan
    subnet_id: Input[str]
    group_id: Input[str]
    key_arn: Input[str]
    bucket: Input[str] | None


class Lustre(ComponentResource):
    """The file system. address: what a node mounts, `<dns name>@tcp:/<mount name>`."""

    address: Output[str]

    def __init__(self, name: str, args: LustreArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Lustre", name, {}, opts)
        child = ResourceOptions(parent=self)
        plan = args.plan
        files = fsx.LustreFileSystem(
            f"{name}-files",
            subnet_ids=args.subnet_id,
            security_group_ids=[args.group_id],
            deployment_type=plan.deployment,
            storage_type="SSD",
            file_system_type_version=LUSTRE_VERSION,
            storage_capacity=plan.size_gib,
            per_unit_storage_throughput=plan.mib_per_second_per_tib,
            data_compression_type=plan.compression,
            kms_key_id=args.key_arn,
            efa_enabled=plan.efa or None,
            metadata_configuration=None if plan.metadata_mode is None else {"mode": plan.metadata_mode},
            skip_final_backup=not plan.final_backup,
            opts=child,
        )
        if args.bucket is not None:
            fsx.DataRepositoryAssociation(
                f"{name}-shows-bucket",
                file_system_id=files.id,
                file_system_path="/",
                data_repository_path=Output.concat("s3://", args.bucket),
                batch_import_meta_data_on_create=True,
                s3={"auto_import_policy": {"events": CHANGES}, "auto_export_policy": {"events": CHANGES}},
                opts=child,
            )
        self.address = Output.concat(files.dns_name, "@tcp:/", files.mount_name)
        self.register_outputs({"address": self.address})
