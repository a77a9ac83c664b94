"""What actions of AWS are as good as.

Sources: Rhino Security Labs, "AWS IAM Privilege Escalation: Methods and Mitigation"; NCC Group, Principal Mapper
("edges"); Service Authorization Reference (which actions know no resource); AWS Managed Policy Reference; IAM User
Guide, "Permissions boundaries for IAM entities" (delegated administration says what may be given).
"""

from __future__ import annotations

import re

from infra.policy.powers import Powers, any_of

POWERS = Powers(
    grants=any_of("""
        iam:Attach*Policy iam:Detach*Policy iam:Put*Policy iam:Delete*Policy iam:CreatePolicyVersion
        iam:SetDefaultPolicyVersion iam:UpdateAssumeRolePolicy iam:*PermissionsBoundary iam:CreateAccessKey
        iam:*LoginProfile iam:AddUserToGroup iam:CreateServiceSpecificCredential
        iam:AddRoleToInstanceProfile iam:*MFADevice iam:*SAMLProvider iam:*OpenIDConnectProvider*
        sts:GetFederationToken organizations:Attach* organizations:Create* organizations:Detach*
        organizations:Move* organizations:Update* sso:Attach* sso:Create* sso:Put* identitystore:Create*
        eks:CreateAccessEntry eks:UpdateAccessEntry eks:AssociateAccessPolicy
    """),
    grant_limits=("iam:permissionsboundary", "iam:policyarn"),
    runs_code={
        "runs commands on machines": any_of("""
            ssm:SendCommand ssm:*Session ssm:Start* ssm:*Association* ssm:*Document* ssm:*MaintenanceWindow*
            ec2-instance-connect:* ecs:ExecuteCommand
        """),
        "starts or changes machines": any_of("""
            ec2:Run* ec2:Start* ec2:Modify* ec2:*IamInstanceProfile* ec2:Request* ec2:Create*
            ec2:GetPasswordData autoscaling:Create* autoscaling:Update*
        """),
        "runs functions, builds, jobs or stacks": any_of("""
            lambda:* cloudformation:* codebuild:* codepipeline:* batch:* glue:* sagemaker:* states:*
            datapipeline:* elasticmapreduce:* imagebuilder:* apprunner:* ecs:RunTask ecs:StartTask
            ecs:RegisterTaskDefinition ecs:*Service
        """),
        "takes on roles": any_of("""
            sts:AssumeRole* iam:PassRole
        """),
    },
    looks=any_of("""
        sts:GetCallerIdentity servicequotas:Get* ce:Get* pricing:Get* tag:GetResources cloudwatch:GetMetric*
        ec2:GetSpotPlacementScores ec2:GetInstanceTypesFromInstanceRequirements
    """),
    looks_at_data=any_of("s3:ListBucket* s3:ListMultipart*"),
    # AmazonSSMManagedInstanceCore, AmazonEC2ContainerRegistryPullOnly, AmazonEKSWorkerNodePolicy, AmazonEKS_CNI_Policy
    harmless=any_of("""
        cloudwatch:PutMetricData logs:CreateLogGroup logs:CreateLogStream logs:PutLogEvents xray:Put*
        ssm:UpdateInstanceInformation ssmmessages:Create*Channel ssmmessages:Open*Channel ec2messages:*
        ecr:GetAuthorizationToken ecr:BatchCheckLayerAvailability ecr:BatchGetImage
        ecr:GetDownloadUrlForLayer eks-auth:AssumeRoleForPodIdentity ec2:AssignPrivateIpAddresses
        ec2:UnassignPrivateIpAddresses ec2:AssignIpv6Addresses ec2:UnassignIpv6Addresses
        ec2:AttachNetworkInterface ec2:CreateNetworkInterface ec2:DeleteNetworkInterface
        ec2:DetachNetworkInterface ec2:ModifyNetworkInterfaceAttribute
    """),
    harmless_on=re.compile(r"ec2:CreateTags arn:aws[\w-]*:ec2:\*:\*:network-interface/\*"),
    which_resource=(
        r"[\w-]+:resourcetag/.+",
        r"aws:(requesttag/.+|tagkeys)",
        r"kms:(viaservice|encryptioncontext:.+)",
        r"ec2:(vpc|subnet|createaction|instanceid)",
        r"cloudwatch:namespace",
        r"ecs:cluster",
    ),
    managed=any_of("""
        AmazonSSMManagedInstanceCore CloudWatchAgentServerPolicy AWSXRayDaemonWriteAccess
        AmazonEKSClusterPolicy AmazonEKSWorkerNodePolicy AmazonEKSWorkerNodeMinimalPolicy
        AmazonEKSVPCResourceController AmazonEKS_CNI_Policy AmazonEC2ContainerRegistryReadOnly
        AmazonEC2ContainerRegistryPullOnly service-role/AmazonEBSCSIDriverPolicy
        service-role/AmazonEFSCSIDriverPolicy service-role/AWSLambdaBasicExecutionRole
    """),
)
