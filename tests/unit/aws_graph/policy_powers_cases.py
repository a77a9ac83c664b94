"""What a role may do: pass another, give itself rights, run code elsewhere or read everything."""

from __future__ import annotations

from typing import Any

from policy_samples import ATTACHMENT, PROVIDER_URN, Insecure, Secure, made, of, permissions

from infra.policy import Resource

NODE = "arn:aws:iam::123456789012:role/node"
TO_EC2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
INSTANCES = ["arn:aws:ec2:*:*:instance/*", "arn:aws:ssm:*:*:document/AWS-RunShellScript"]


def may(action: str, resource: Any = "*", **more: Any) -> Resource:
    return permissions(Action=action, Resource=resource, **more)


INSECURE: Insecure = {
    # giving oneself rights
    "passing a role by any name": of("privilege-escalation", may("iam:PassRole", "arn:aws:iam::123456789012:role/?*")),
    "passing a role with a hyphen": of(
        "privilege-escalation", may("iam:PassRole", "arn:aws:iam::123456789012:role/*-*", Condition=TO_EC2)
    ),
    "passing a role to any service": of("privilege-escalation", may("iam:PassRole", NODE)),
    "passing a role to services by a pattern": of(
        "privilege-escalation", may("iam:PassRole", NODE, Condition={"StringLike": {"iam:PassedToService": "*"}})
    ),
    **{
        f"{action} of one": of("privilege-escalation", may(action, NODE))
        for action in (
            "iam:AttachRolePolicy",
            "iam:PutRolePolicy",
            "iam:UpdateAssumeRolePolicy",
            "iam:CreatePolicyVersion",
            "iam:SetDefaultPolicyVersion",
            "iam:CreateAccessKey",
            "iam:DeleteRolePermissionsBoundary",
            "iam:DeleteRolePolicy",
            "IAM:putrolepolicy",
            "sts:GetFederationToken",
            "eks:CreateAccessEntry",
        )
    },
    # as good as running code, or reading everything
    **{
        f"{action} everywhere": of("wildcard-actions", may(action))
        for action in (
            "ssm:SendCommand",
            "ssm:StartSession",
            "ssm:StartAutomationExecution",
            "ec2-instance-connect:SendSSHPublicKey",
            "ec2:ModifyInstanceAttribute",
            "ec2:RunInstances",
            "ec2:TerminateInstances",
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:GetPasswordData",
            "lambda:UpdateFunctionCode",
            "lambda:InvokeFunction",
            "cloudformation:CreateStack",
            "codebuild:StartBuild",
            "glue:CreateDevEndpoint",
            "sagemaker:CreatePresignedNotebookInstanceUrl",
            "ecs:ExecuteCommand",
            "sts:AssumeRole",
            "secretsmanager:BatchGetSecretValue",
            "ssm:GetParametersByPath",
            "dynamodb:Scan",
            "s3:ListBucket",
            "newservice:CreateAnything",
        )
    },
    "a bucket that the caller names": of(
        "wildcard-actions", may("s3:GetObject", "arn:aws:s3:::${aws:PrincipalTag/bucket}/*")
    ),
    "a command on every machine of the account": of("wildcard-actions", may("ssm:SendCommand", INSTANCES)),
    "a command on machines with any tag": of(
        "wildcard-actions", may("ssm:SendCommand", INSTANCES, Condition={"StringLike": {"ssm:resourceTag/a": "*"}})
    ),
    "a role of a name in every account": of("wildcard-actions", may("sts:AssumeRole", "arn:aws:iam::*:role/deploy")),
    "a policy of who knows where": of("broad-managed-policy", made(ATTACHMENT, policyArn="${lookup.arn}")),
    "all secrets by a policy of AWS's": of(
        "broad-managed-policy", made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/SecretsManagerReadWrite")
    ),
    "everything to read": of(
        "broad-managed-policy", made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/ReadOnlyAccess")
    ),
}

SECURE: Secure = {
    "passing a named role to a named service": [may("iam:PassRole", NODE, Condition=TO_EC2)],
    "attaching one policy": [
        may(
            "iam:AttachRolePolicy",
            NODE,
            Condition={"ArnEquals": {"iam:PolicyARN": "arn:aws:iam::123456789012:policy/a"}},
        )
    ],
    "roles within a boundary": [
        may(
            "iam:PutRolePolicy",
            "arn:aws:iam::123456789012:role/team/*",
            Condition={"StringEquals": {"iam:PermissionsBoundary": "arn:aws:iam::123456789012:policy/limit"}},
        )
    ],
    "a command on one machine": [
        may("ssm:SendCommand", ["arn:aws:ec2:*:*:instance/i-0a", "arn:aws:ssm:*:*:document/AWS-RunShellScript"])
    ],
    "commands on machines of a tag": [
        may("ssm:SendCommand", INSTANCES, Condition={"StringEquals": {"ssm:resourceTag/gpufleet:stack": "a"}})
    ],
    "ending machines of the stack": [
        may("ec2:TerminateInstances", "*", Condition={"StringEquals": {"aws:ResourceTag/gpufleet:stack": "a"}})
    ],
    "buckets by a prefix": [may("s3:GetObject", "arn:aws:s3:::gpufleet-*/*")],
    "one folder of a bucket for each caller": [may("s3:PutObject", "arn:aws:s3:::data/${aws:username}/*")],
    "a secret and its random end": [
        may("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:123456789012:secret:db-??????")
    ],
    "parameters below a path": [may("ssm:GetParametersByPath", "arn:aws:ssm:us-east-1:123456789012:parameter/prod/*")],
    "one log group": [may("logs:FilterLogEvents", "arn:aws:logs:us-east-1:123456789012:log-group:/aws/eks/a:*")],
    "measures": [may("cloudwatch:PutMetricData")],
    "images to pull": [
        made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"),
    ],
    "a policy of the account": [made(ATTACHMENT, policyArn="arn:aws:iam::123456789012:policy/ours")],
    "a policy of the stack": [
        Resource(
            type=ATTACHMENT,
            name="it",
            provider=PROVIDER_URN,
            inputs={"policyArn": "${ours.arn}"},
            references={"policyArn": ["urn:pulumi:x::gpufleet::aws:iam/policy:Policy::ours"]},
        )
    ],
}
