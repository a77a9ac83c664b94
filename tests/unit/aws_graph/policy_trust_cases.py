"""Who may take a role or use a resource."""

from __future__ import annotations

from typing import Any

from policy_samples import (
    GITHUB_PROVIDER,
    QUEUE_POLICY,
    ROLE_POLICY,
    Insecure,
    Secure,
    key,
    made,
    of,
    permissions,
    policy,
    trust,
)

from infra.policy import Resource

OWN, FOREIGN = "arn:aws:iam::${vpc.ownerId}:role/ci", "arn:aws:iam::999988887777:root"
GITHUB = "token.actions.githubusercontent.com"


def web_identity(subject: str | None, audience: str | None = "sts.amazonaws.com", like: str = "StringLike") -> Resource:
    tests = {f"{GITHUB}:sub": subject, f"{GITHUB}:aud": audience}
    condition = {like: {name: value for name, value in tests.items() if value is not None}}
    return trust(Action="sts:AssumeRoleWithWebIdentity", Principal={"Federated": GITHUB_PROVIDER}, Condition=condition)


def queue(condition: dict[str, Any], principal: Any = "*") -> Resource:
    statement = {"Action": "sqs:SendMessage", "Resource": "arn:aws:sqs:us-east-1:123456789012:q"}
    return made(QUEUE_POLICY, policy=policy(**statement, Principal=principal, Condition=condition))


def may(action: str, resource: Any = "*", **more: Any) -> Resource:
    return permissions(Action=action, Resource=resource, **more)


INSECURE: Insecure = {
    # what stands for everybody, in other words
    "a caller by a wildcard": of("wildcard-principals", queue({"StringLike": {"aws:PrincipalArn": "*"}})),
    "a caller by two wildcards": of("wildcard-principals", queue({"ArnLike": {"aws:PrincipalArn": "?*-*"}})),
    "every role of every account": of(
        "wildcard-principals", queue({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/*"}})
    ),
    "one role's name in every account": of(
        "wildcard-principals", queue({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/node"}})
    ),
    "the caller's own account": of(
        "wildcard-principals", queue({"StringEquals": {"aws:PrincipalAccount": "${aws:PrincipalAccount}"}})
    ),
    "half an account": of("wildcard-principals", queue({"StringLike": {"aws:SourceAccount": "1234*"}})),
    "no account": of("wildcard-principals", queue({"StringEquals": {"aws:SourceAccount": []}})),
    "an account, if there is one": of(
        "wildcard-principals", queue({"StringEqualsIfExists": {"aws:SourceAccount": "123456789012"}})
    ),
    "all values of none": of(
        "wildcard-principals", queue({"ForAllValues:StringEquals": {"aws:PrincipalOrgID": "o-a1b2c3d4e5"}})
    ),
    "every account but one": of(
        "wildcard-principals", queue({"StringNotEquals": {"aws:PrincipalAccount": "123456789012"}})
    ),
    "any organisation": of("wildcard-principals", queue({"StringLike": {"aws:PrincipalOrgID": "o-*"}})),
    "one account or any": of(
        "wildcard-principals", queue({"StringLike": {"aws:PrincipalAccount": ["123456789012", "*"]}})
    ),
    "a principal that is not known": of("wildcard-principals", queue({}, {"AWS": "[unknown]"})),
    "a statement that neither allows nor denies": of(
        "wildcard-principals", made(QUEUE_POLICY, policy=policy("allow", Action="sqs:SendMessage", Principal="*"))
    ),
    "an element that is there twice": of(
        "wildcard-actions",
        made(ROLE_POLICY, policy=policy(Action="s3:GetObject").replace('"Action"', '"Action": "*", "Action"')),
    ),
    "actions in lower case letters": of(
        "wildcard-actions",
        made(ROLE_POLICY, policy=policy(Resource="*").replace('"Resource"', '"action": "*", "Resource"')),
    ),
    "an action that is not known": of("wildcard-actions", may("[unknown]", "arn:aws:s3:::data/*")),
    "a trust policy of every kind of taking on": of("wildcard-role", trust(Action="sts:*", Principal={"AWS": OWN})),
    "an access point for everybody": of(
        "wildcard-principals",
        made("aws:s3/accessPoint:AccessPoint", policy=policy(Action="s3:GetObject", Principal="*", Resource="*")),
    ),
    "a search domain for everybody": of(
        "wildcard-principals",
        made("aws:opensearch/domain:Domain", accessPolicies=policy(Action="es:ESHttpGet", Principal={"AWS": "*"})),
    ),
    "a function for everybody": of(
        "wildcard-principals", made("aws:lambda/permission:Permission", action="lambda:InvokeFunction", principal="*")
    ),
    "a function for anybody's buckets": of(
        "confused-deputy", made("aws:lambda/permission:Permission", principal="s3.amazonaws.com")
    ),
    # roles for others
    "another account": of("foreign-account", trust(Principal={"AWS": FOREIGN})),
    "another account by its number": of("foreign-account", trust(Principal={"AWS": ["999988887777"]})),
    "another account's role": of("foreign-account", trust(Principal={"AWS": "arn:aws:iam::999988887777:role/tool"})),
    "another account by a condition": of(
        "foreign-account",
        trust(Principal={"AWS": "*"}, Condition={"StringEquals": {"aws:PrincipalAccount": "999988887777"}}),
    ),
    "another account with any external id": of(
        "foreign-account", trust(Principal={"AWS": FOREIGN}, Condition={"StringLike": {"sts:ExternalId": "*"}})
    ),
    "another account with an external id, if it has one": of(
        "foreign-account",
        trust(Principal={"AWS": FOREIGN}, Condition={"StringEqualsIfExists": {"sts:ExternalId": "a1"}}),
    ),
    "another account beside the stack's own": of(
        "foreign-account",
        made("aws:ec2/vpc:Vpc", "vpc", ownerId="123456789012", tags={}),
        trust(Principal={"AWS": ["123456789012", "999988887777"]}),
    ),
    "a service for anybody's flow logs": of(
        "confused-deputy", trust(Principal={"Service": "vpc-flow-logs.amazonaws.com"})
    ),
    "a service for half an account": of(
        "confused-deputy",
        trust(Principal={"Service": "eks.amazonaws.com"}, Condition={"StringLike": {"aws:SourceAccount": "12345*"}}),
    ),
    "a queue for anybody's events": of("confused-deputy", queue({}, {"Service": "events.amazonaws.com"})),
    "a key for anybody's logs": of(
        "confused-deputy",
        key(policy=policy(Action="kms:Decrypt", Resource="*", Principal={"Service": "logs.us-east-1.amazonaws.com"})),
    ),
    # identity providers
    "every repository of an organisation": of("federated-subjects", web_identity("repo:org/*")),
    "every branch and pull request": of("federated-subjects", web_identity("repo:org/it:*")),
    "a repository whose name begins so": of("federated-subjects", web_identity("repo:org/it*:ref:refs/heads/main")),
    "any subject that is not empty": of("federated-subjects", web_identity("?*")),
    "no subject": of("federated-subjects", web_identity(None)),
    "a subject, if there is one": of(
        "federated-subjects", web_identity("repo:org/it:environment:prod", like="StringEqualsIfExists")
    ),
    "all subjects of none": of(
        "federated-subjects", web_identity("repo:org/it:environment:prod", like="ForAllValues:StringLike")
    ),
    "all subjects but one": of(
        "federated-subjects", web_identity("repo:org/it:environment:prod", like="StringNotEquals")
    ),
    "a token for others": of("federated-subjects", web_identity("repo:org/it:environment:prod", None)),
    "a token for anybody": of("federated-subjects", web_identity("repo:org/it:environment:prod", "*")),
    "every namespace": of("federated-subjects", web_identity("system:serviceaccount:*:loader")),
}

SECURE: Secure = {
    "a role of the stack's own account": [trust(Principal={"AWS": OWN})],
    "a role of the account that the engine knows": [
        made(
            "aws:ec2/subnet:Subnet",
            "subnet",
            ownerId="123456789012",
            tags={"gpufleet:stack": "x", "gpufleet:name": "y"},
        ),
        trust(Principal={"AWS": "arn:aws:iam::123456789012:role/ci"}),
    ],
    "another account with an external id": [
        trust(Principal={"AWS": FOREIGN}, Condition={"StringEquals": {"sts:ExternalId": "f3a9"}})
    ],
    "another account of the organisation": [
        trust(Principal={"AWS": FOREIGN}, Condition={"StringEquals": {"aws:PrincipalOrgID": "o-a1b2c3d4e5"}})
    ],
    "everybody of an organisation's branch": [
        queue({"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-a1b2c3d4e5/r-ab12/ou-ab12-11111111/*"}})
    ],
    "every role of one account": [queue({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::123456789012:role/*"}})],
    "a caller of the stack's": [queue({"ArnEquals": {"aws:PrincipalArn": "${nodes-role.arn}"}})],
    "a queue for a bucket's notes": [
        queue({"ArnLike": {"aws:SourceArn": "arn:aws:s3:::data-of-ours"}}, {"Service": "s3.amazonaws.com"})
    ],
    "a function for the account's buckets": [
        made("aws:lambda/permission:Permission", principal="s3.amazonaws.com", sourceAccount="123456789012")
    ],
    "an endpoint's policy": [
        made(
            "aws:ec2/vpcEndpoint:VpcEndpoint",
            tags={"gpufleet:stack": "x", "gpufleet:name": "y"},
            policy=policy(Action="s3:GetObject", Principal="*", Resource="*"),
        )
    ],
    "flow logs of this account": [
        trust(
            Principal={"Service": "vpc-flow-logs.amazonaws.com"},
            Condition={
                "StringEquals": {"aws:SourceAccount": "${vpc.ownerId}"},
                "ArnLike": {"aws:SourceArn": "arn:aws:ec2:us-east-1:${vpc.ownerId}:vpc-flow-log/*"},
            },
        )
    ],
    "one branch of one repository": [web_identity("repo:org/it:ref:refs/heads/main", like="StringEquals")],
    "release branches of one repository": [web_identity("repo:org/it:ref:refs/heads/release-*")],
    "an environment of one repository": [web_identity("repo:org/it:environment:prod")],
    "one service account": [web_identity("system:serviceaccount:research:loader")],
    "a workspace of a project": [web_identity("organization:acme:project:gpu:workspace:prod:run_phase:*")],
}
