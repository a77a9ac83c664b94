"""Who may do what: policies, roles, credentials, and what is shared."""

from __future__ import annotations

from policy_samples import (
    ATTACHMENT,
    GITHUB,
    GITHUB_PROVIDER,
    PARAMETER,
    QUEUE_POLICY,
    ROLE,
    ROLE_POLICY,
    TAGS,
    Insecure,
    Secure,
    bucket,
    key,
    made,
    of,
    permissions,
    policy,
    trust,
)

NODES, STORAGE_ROLE = (f"arn:aws:iam::${{vpc.ownerId}}:role/{name}" for name in ("nodes-role", "storage-role"))

INSECURE: Insecure = {
    "every action": of("wildcard-actions", permissions(Action="*")),
    "every action of a service": of("wildcard-actions", permissions(Action=["s3:GetObject", "ec2:*"])),
    "actions by a pattern": of("wildcard-actions", permissions(Action="s3:Put*")),
    "all actions but some": of("wildcard-actions", made(ROLE_POLICY, policy=policy(NotAction="iam:*", Resource="*"))),
    "all resources but some": of(
        "wildcard-actions", made(ROLE_POLICY, policy=policy(Action="s3:GetObject", NotResource="arn:aws:s3:::a"))
    ),
    "passing any role": of("wildcard-actions", permissions(Action="iam:PassRole", Resource="*")),
    "a policy that is not known": of("wildcard-actions", made(ROLE_POLICY, policy="[unknown]")),
    "an inline policy of a role": of(
        "wildcard-role",
        made(
            ROLE,
            tags=TAGS,
            assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"Service": "ec2.amazonaws.com"}),
            inlinePolicies=[{"policy": policy(Action="*", Resource="*")}],
        ),
    ),
    "a role for everybody": of(
        "wildcard-role",
        made(ROLE, tags=TAGS, assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"AWS": "*"})),
    ),
    "an administrator": of(
        "broad-managed-policy", made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AdministratorAccess")
    ),
    "full access to a service": of(
        "broad-managed-policy", made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
    ),
    "a key for everybody": of(
        "wildcard-principals", key(policy=policy(Action="kms:Decrypt", Resource="*", Principal={"AWS": "*"}))
    ),
    "a key with all actions for a service": of(
        "wildcard-principals",
        key(policy=policy(Action="kms:*", Resource="*", Principal={"Service": "logs.amazonaws.com"})),
    ),
    "a queue for everybody": of(
        "wildcard-principals",
        made(QUEUE_POLICY, policy=policy(Action="sqs:SendMessage", Resource="*", Principal="*")),
    ),
    "a queue for everybody by a hollow condition": of(
        "wildcard-principals",
        made(
            QUEUE_POLICY,
            policy=policy(
                Action="sqs:SendMessage",
                Resource="*",
                Principal="*",
                Condition={"ArnLike": {"aws:SourceArn": "*"}},
            ),
        ),
    ),
    "all principals but some": of(
        "wildcard-principals",
        made(QUEUE_POLICY, policy=policy(Action="sqs:SendMessage", Resource="*", NotPrincipal={"AWS": "1"})),
    ),
    "a bucket open to everybody": of(
        "wildcard-principals",
        *bucket(guard=policy(Action="s3:GetObject", Resource="arn:aws:s3:::data/*", Principal="*")),
    ),
    "every object of every bucket": of("wildcard-actions", permissions(Resource="*")),
    "every object by an ARN": of("wildcard-actions", permissions(Resource="arn:aws:s3:::*/*")),
    "every key of the account": of(
        "wildcard-actions",
        permissions(Action="kms:Decrypt", Resource="arn:aws:kms:us-east-1:123456789012:key/*"),
    ),
    "every secret": of("wildcard-actions", permissions(Action="secretsmanager:GetSecretValue", Resource="*")),
    "every role": of("wildcard-actions", permissions(Action="sts:AssumeRole", Resource="arn:aws:iam::*:role/*")),
    "every role of a kind": of(
        "privilege-escalation", permissions(Action="sts:AssumeRole", Resource=f"{STORAGE_ROLE[:-4]}*")
    ),
    "a role that every role of an account takes on by a pattern": of(
        "wildcard-role",
        trust(Principal={"AWS": "*"}, Condition={"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/*"}}),
    ),
    "making itself an administrator": of(
        "wildcard-actions", permissions(Action=["iam:AttachRolePolicy", "iam:CreateRole"], Resource="*")
    ),
    "a command on every machine": of("wildcard-actions", permissions(Action="ssm:SendCommand", Resource="*")),
    "a statement that is no list": of(
        "wildcard-actions",
        made(ROLE_POLICY, policy='{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}'),
    ),
    "a role for every repository": of(
        "federated-subjects", trust(Action="sts:AssumeRoleWithWebIdentity", Principal={"Federated": GITHUB_PROVIDER})
    ),
    "a role for every repository by a pattern": of(
        "federated-subjects",
        trust(
            Action="sts:AssumeRoleWithWebIdentity",
            Principal={"Federated": GITHUB_PROVIDER},
            Condition={"StringLike": {"token.actions.githubusercontent.com:sub": "repo:*"}},
        ),
    ),
    "a role for all but one": of("wildcard-role", trust(NotPrincipal={"AWS": "arn:aws:iam::123456789012:root"})),
    "a managed policy of the role itself": of(
        "wildcard-role",
        made(
            ROLE,
            tags=TAGS,
            assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"Service": "ec2.amazonaws.com"}),
            managedPolicyArns=["arn:aws:iam::aws:policy/PowerUserAccess"],
        ),
    ),
    "an image registry for everybody": of(
        "wildcard-principals",
        made(
            "aws:ecr/repositoryPolicy:RepositoryPolicy",
            policy=policy(Action="ecr:BatchGetImage", Principal="*"),
        ),
    ),
    "a file system for everybody": of(
        "wildcard-principals",
        made(
            "aws:efs/fileSystemPolicy:FileSystemPolicy",
            policy=policy(Action="elasticfilesystem:ClientMount", Principal={"AWS": "*"}),
        ),
    ),
    "an access key": of("no-lasting-credentials", made("aws:iam/accessKey:AccessKey", user="ops")),
    "a password": of("no-lasting-credentials", made("aws:iam/userLoginProfile:UserLoginProfile", user="ops")),
    "a password as a parameter": of(
        "secret-parameter", made(PARAMETER, name="/stack/db-password", type="String", value="[secret]")
    ),
    "a token as a parameter": of("secret-parameter", made(PARAMETER, name="/stack/hub", type="String", value=GITHUB)),
    "an image for everybody": of(
        "private-image", made("aws:ec2/amiLaunchPermission:AmiLaunchPermission", imageId="ami-1", group="all")
    ),
    "images that may be shared": of(
        "sharing-stays-blocked", made("aws:ec2/imageBlockPublicAccess:ImageBlockPublicAccess", state="unblocked")
    ),
    "snapshots that may be shared": of(
        "sharing-stays-blocked", made("aws:ebs/snapshotBlockPublicAccess:SnapshotBlockPublicAccess", state="unblocked")
    ),
}

SECURE: Secure = {
    "named actions": [permissions(Action=["s3:GetObject", "s3:PutObject"])],
    "actions that know no resource": [permissions(Action="ec2:DescribeInstances", Resource="*")],
    "a wildcard that denies": [made(ROLE_POLICY, policy=policy("Deny", Action="*", Resource="*"))],
    "a role for a service": [
        made(
            ROLE,
            tags=TAGS,
            assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"Service": "ec2.amazonaws.com"}),
        )
    ],
    "a role that one other role takes on": [
        trust(Principal={"AWS": NODES}),
        permissions(Action="sts:AssumeRole", Resource=STORAGE_ROLE),
    ],
    "a narrow managed policy": [made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")],
    "a key for its account": [
        key(policy=policy(Action="kms:*", Resource="*", Principal={"AWS": "arn:aws:iam::${vpc.ownerId}:root"}))
    ],
    "a key for callers of the account": [
        key(
            policy=policy(
                Action=["kms:Decrypt"],
                Resource="*",
                Principal={"AWS": "*"},
                Condition={"StringEquals": {"kms:CallerAccount": "123456789012"}},
            )
        )
    ],
    "a queue for a rule": [
        made(
            QUEUE_POLICY,
            policy=policy(
                Action="sqs:SendMessage",
                Resource="*",
                Principal={"Service": "events.amazonaws.com"},
                Condition={"ArnEquals": {"aws:SourceArn": ["arn:aws:events:us-east-1:123456789012:rule/a"]}},
            ),
        )
    ],
    "objects of a named bucket": [permissions(Resource="arn:aws:s3:::${data.bucket}/*")],
    "a named key": [permissions(Action="kms:Decrypt", Resource="${key.arn}")],
    "every key, through one service": [
        permissions(
            Action="kms:Decrypt",
            Resource="*",
            Condition={"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}},
        )
    ],
    "a role for pods": [
        trust(Action=["sts:AssumeRole", "sts:TagSession"], Principal={"Service": "pods.eks.amazonaws.com"})
    ],
    "an encrypted parameter": [made(PARAMETER, name="/stack/token", type="SecureString", value="[secret]")],
    "a parameter with an address": [made(PARAMETER, name="/stack/endpoint", type="String", value="https://x.example")],
    "an image for an account": [
        made("aws:ec2/amiLaunchPermission:AmiLaunchPermission", imageId="ami-1", accountId="123456789012")
    ],
    "blocked images": [made("aws:ec2/imageBlockPublicAccess:ImageBlockPublicAccess", state="block-new-sharing")],
}
