"""What actions of Alibaba Cloud are as good as.

Sources: RAM Reference (which actions know no resource); Alibaba Cloud ECS, "Grant a RAM user permissions to use Cloud
Assistant" and "Grant a RAM user the permissions to manage an instance RAM role" (PassRole).
"""

from __future__ import annotations

from infra.policy.powers import Powers, any_of

POWERS = Powers(
    grants=any_of("""
        ram:AttachPolicyTo* ram:DetachPolicyFrom* ram:CreatePolicyVersion ram:SetDefaultPolicyVersion
        ram:UpdateRole ram:CreateAccessKey ram:AddUserToGroup ram:*LoginProfile ram:*MFADevice
        ram:SetSecurityPreference ims:Create* ims:Update* resourcemanager:Create* resourcemanager:Attach*
        resourcemanager:Update*
    """),
    runs_code={
        "runs commands on machines": any_of("""
            ecs:RunCommand ecs:InvokeCommand ecs:CreateCommand ecs:ModifyCommand ecs:SendFile
            ecs:StartTerminalSession oos:StartExecution
        """),
        "starts or changes machines": any_of("""
            ecs:RunInstances ecs:Create* ecs:Modify* ecs:Attach* ess:Create* ess:Modify* cs:Create*
            cs:Modify*
        """),
        "runs functions, builds, jobs or stacks": any_of("""
            fc:* ros:* pai*:*
        """),
        "takes on roles": any_of("""
            sts:AssumeRole* ram:PassRole
        """),
    },
    looks=any_of("sts:GetCallerIdentity"),
    looks_at_data=any_of("oss:ListObject* oss:ListParts oss:ListMultipart*"),
    harmless=any_of("cms:PutCustomMetric"),
    which_resource=(r"[\w-]+:resourcetag/.+", r"acs:resourcetag/.+", r"kms:(viaservice|encryptioncontext:.+)"),
    managed=any_of("""
        AliyunECSReadOnlyAccess AliyunVPCReadOnlyAccess AliyunESSReadOnlyAccess AliyunCloudMonitorReadOnlyAccess
        AliyunCSManaged*RolePolicy
    """),
)
