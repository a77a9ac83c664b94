"""What actions are as good as, in tables: being an administrator, running code, or nothing that a node must not have.

`*` stands for any letters, as in a policy. Sources: Rhino Security Labs, "AWS IAM Privilege Escalation: Methods and
Mitigation"; NCC Group, Principal Mapper ("edges"); Service Authorization Reference (which actions know no resource);
AWS Managed Policy Reference; Alibaba Cloud ECS, "Grant a RAM user permissions to use Cloud Assistant" and "Grant a RAM
user the permissions to manage an instance RAM role" (PassRole).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate


def any_of(text: str) -> re.Pattern[str]:
    """Patterns between blanks, as one that takes letters of either case."""
    return re.compile("|".join(map(translate, text.split())), re.IGNORECASE)


# Whoever may do this to one role, user or policy has whatever that one may be given.
GRANTS = any_of("""
    iam:Attach*Policy iam:Detach*Policy iam:Put*Policy iam:Delete*Policy iam:CreatePolicyVersion
    iam:SetDefaultPolicyVersion iam:UpdateAssumeRolePolicy iam:*PermissionsBoundary iam:CreateAccessKey
    iam:*LoginProfile iam:AddUserToGroup iam:CreateServiceSpecificCredential iam:AddRoleToInstanceProfile
    iam:*MFADevice iam:*SAMLProvider iam:*OpenIDConnectProvider* sts:GetFederationToken
    organizations:Attach* organizations:Create* organizations:Detach* organizations:Move* organizations:Update*
    sso:Attach* sso:Create* sso:Put* identitystore:Create* eks:CreateAccessEntry eks:UpdateAccessEntry
    eks:AssociateAccessPolicy
    ram:AttachPolicyTo* ram:DetachPolicyFrom* ram:CreatePolicyVersion ram:SetDefaultPolicyVersion ram:UpdateRole
    ram:CreateAccessKey ram:AddUserToGroup ram:*LoginProfile ram:*MFADevice ram:SetSecurityPreference ims:Create*
    ims:Update* resourcemanager:Create* resourcemanager:Attach* resourcemanager:Update*
""")
# Delegated administration says what may be given (IAM User Guide, "Permissions boundaries for IAM entities").
GRANT_LIMITS = ("iam:permissionsboundary", "iam:policyarn")

# Whoever may do this to a machine or a job runs code there, with its role.
RUNS_CODE: Mapping[str, re.Pattern[str]] = {
    "runs commands on machines": any_of("""
        ssm:SendCommand ssm:*Session ssm:Start* ssm:*Association* ssm:*Document* ssm:*MaintenanceWindow*
        ec2-instance-connect:* ecs:ExecuteCommand
        ecs:RunCommand ecs:InvokeCommand ecs:CreateCommand ecs:ModifyCommand ecs:SendFile ecs:StartTerminalSession
        oos:StartExecution
    """),
    "starts or changes machines": any_of("""
        ec2:Run* ec2:Start* ec2:Modify* ec2:*IamInstanceProfile* ec2:Request* ec2:Create* ec2:GetPasswordData
        autoscaling:Create* autoscaling:Update*
        ecs:RunInstances ecs:Create* ecs:Modify* ecs:Attach* ess:Create* ess:Modify* cs:Create* cs:Modify*
    """),
    "runs functions, builds, jobs or stacks": any_of("""
        lambda:* cloudformation:* codebuild:* codepipeline:* batch:* glue:* sagemaker:* states:* datapipeline:*
        elasticmapreduce:* imagebuilder:* apprunner:* ecs:RunTask ecs:StartTask ecs:RegisterTaskDefinition ecs:*Service
        fc:* ros:* pai*:*
    """),
    "takes on roles": any_of("sts:AssumeRole* iam:PassRole ram:PassRole"),
}

# What a statement may say of every resource there is: the action knows none, or gives nothing away. Everything else is
# refused there, actions that came after this table too.
LOOKS = any_of("""
    *:Describe* *:List* sts:GetCallerIdentity servicequotas:Get* ce:Get* pricing:Get* tag:GetResources
    cloudwatch:GetMetric* ec2:GetSpotPlacementScores ec2:GetInstanceTypesFromInstanceRequirements
""")
LOOKS_AT_DATA = any_of("s3:ListBucket* s3:ListMultipart* oss:ListObject* oss:ListParts oss:ListMultipart*")
HARMLESS = (
    any_of("""
    cloudwatch:PutMetricData logs:CreateLogGroup logs:CreateLogStream logs:PutLogEvents xray:Put* cms:PutCustomMetric
    ssm:UpdateInstanceInformation ssmmessages:Create*Channel ssmmessages:Open*Channel ec2messages:*
    ecr:GetAuthorizationToken ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetDownloadUrlForLayer
    eks-auth:AssumeRoleForPodIdentity
    ec2:AssignPrivateIpAddresses ec2:UnassignPrivateIpAddresses ec2:AssignIpv6Addresses ec2:UnassignIpv6Addresses
    ec2:AttachNetworkInterface ec2:CreateNetworkInterface ec2:DeleteNetworkInterface ec2:DetachNetworkInterface
    ec2:ModifyNetworkInterfaceAttribute
""")
)  # AmazonSSMManagedInstanceCore, AmazonEC2ContainerRegistryPullOnly, AmazonEKSWorkerNodePolicy, AmazonEKS_CNI_Policy
TAGS_INTERFACES = re.compile(r"ec2:CreateTags arn:aws[\w-]*:ec2:\*:\*:network-interface/\*")
# Conditions by which a statement about every resource means some of them after all.
WHICH_RESOURCE = (
    r"[\w-]+:resourcetag/.+",
    r"acs:resourcetag/.+",
    r"aws:(requesttag/.+|tagkeys)",
    r"kms:(viaservice|encryptioncontext:.+)",
    r"ec2:(vpc|subnet|createaction|instanceid)",
    r"cloudwatch:namespace",
    r"ecs:cluster",
)

# Policies that a cloud keeps, and may widen at any time: these few are what nodes and pods are known to need.
MANAGED = any_of("""
    AmazonSSMManagedInstanceCore CloudWatchAgentServerPolicy AWSXRayDaemonWriteAccess AmazonEKSClusterPolicy
    AmazonEKSWorkerNodePolicy AmazonEKSWorkerNodeMinimalPolicy AmazonEKSVPCResourceController AmazonEKS_CNI_Policy
    AmazonEC2ContainerRegistryReadOnly AmazonEC2ContainerRegistryPullOnly service-role/AmazonEBSCSIDriverPolicy
    service-role/AmazonEFSCSIDriverPolicy service-role/AWSLambdaBasicExecutionRole
    AliyunECSReadOnlyAccess AliyunVPCReadOnlyAccess AliyunESSReadOnlyAccess AliyunCloudMonitorReadOnlyAccess
    AliyunCSManaged*RolePolicy
""")


def reason(action: str) -> str:
    """What an action is as good as, in a few words; "" for others."""
    return next((what for what, actions in RUNS_CODE.items() if actions.match(action)), "")


def about_everything(action: str, resource: str) -> bool:
    """Whether an action may be allowed on a resource that stands for every one."""
    if LOOKS_AT_DATA.match(action):
        return False
    tags = TAGS_INTERFACES.fullmatch(f"{action} {resource}")
    return bool(LOOKS.match(action) or HARMLESS.match(action) or tags)
