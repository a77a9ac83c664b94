"""Who is let in: by a role's trust policy, and by the policies of buckets, keys, queues and their like.

Sources: IAM User Guide, "The confused deputy problem" (ExternalId for other accounts, aws:SourceAccount and
aws:SourceArn for services), "Create a role for OpenID Connect federation" (subject and audience); GitHub Docs, "About
security hardening with OpenID Connect" (`repo:ORG/REPO:*` is every branch and every pull request).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from infra.clouds.aws.policy.identity.iam import IDENTITY_POLICIES, ROLE, managed
from infra.clouds.aws.policy.identity.powers import POWERS
from infra.clouds.aws.policy.types import KEY
from infra.policy.documents import Statement, account_of, allowing, exact, statements, too_wide
from infra.policy.iam import unnamed_actions, wildcards
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.trust import any_subject, foreigners, own_accounts
from infra.policy.wire import items, nested

KEY_POLICY = "aws:kms/keyPolicy:KeyPolicy"
RESOURCE_POLICIES = (
    KEY,
    KEY_POLICY,
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:sqs/queue:Queue",
    "aws:sqs/queuePolicy:QueuePolicy",
    "aws:sns/topic:Topic",
    "aws:sns/topicPolicy:TopicPolicy",
    "aws:backup/vaultPolicy:VaultPolicy",
    "aws:ecr/repositoryPolicy:RepositoryPolicy",
    "aws:efs/fileSystemPolicy:FileSystemPolicy",
    "aws:secretsmanager/secretPolicy:SecretPolicy",
)
# Other resources have policies under these names, which are read where they name a principal. An endpoint's lets nobody
# in by itself (VPC User Guide, "Control access to VPC endpoints using endpoint policies").
POLICY_KEYS = ("policy", "accessPolicy", "accessPolicies", "resourcePolicy", "repositoryPolicy")
GIVES_NOTHING = ("aws:ec2/vpcEndpoint:VpcEndpoint", "aws:ec2/vpcEndpointPolicy:VpcEndpointPolicy", *IDENTITY_POLICIES)
PERMISSION = "aws:lambda/permission:Permission"
TRUST = "assumeRolePolicy"
ACCOUNT_KEYS = r"aws:(source|principal)account|kms:calleraccount"
ARN_KEYS = r"aws:(source|principal)arn|kms:encryptioncontext:aws:logs:arn"
ORGANISATION_KEYS = r"aws:(source|principal)org(id|paths)"
ENOUGH = ("sts:externalid", ORGANISATION_KEYS)
NETWORK_KEYS = r"aws:sourcevpce?"
SOURCE_KEYS = (r"aws:source(account|arn|orgid|orgpaths)", r"kms:encryptioncontext:aws:logs:arn")
ANYBODYS = "lets {} in for anybody; name the account (aws:SourceAccount) or the source's ARN (aws:SourceArn)"
SUBJECT, AUDIENCE = r".+:sub", r".+:aud"
# Services that take on a role without saying for whom. EC2 starts machines with roles of its own account alone, since a
# role is passed within it (IAM User Guide, "Grant permissions to pass a role"), and its guide names no source key; EKS
# Pod Identity sends tags of the pod (EKS User Guide, "Create IAM role with trust policy required by EKS Pod Identity").
SENDS_NO_SOURCE = frozenset({"ec2.amazonaws.com", "ec2.amazonaws.com.cn", "pods.eks.amazonaws.com"})


@rule("wildcard-role", ROLE)
def wildcard_role(resource: Resource) -> Iterator[Violation]:
    """A role names who may take it, and what it may do."""
    for path, inline in nested(resource.inputs, "inlinePolicies"):
        yield from wildcards(f"{path}.policy", inline.get("policy"), POWERS)
    for i, arn in enumerate(items(resource.inputs.get("managedPolicyArns"))):
        yield from managed(f"managedPolicyArns[{i}]", arn, resource.references.get("managedPolicyArns", ()))
    yield from everybody(TRUST, resource.inputs.get(TRUST))


@rule("wildcard-principals")
def wildcard_principals(resource: Resource) -> Iterator[Violation]:
    """A resource without a policy is its own account's; one with a policy lets in those that it names."""
    for path, policy in _policies(resource):
        yield from everybody(path, policy)
        for statement in allowing(policy):
            own = resource.type in (KEY, KEY_POLICY) and statement.actions == ["kms:*"] and _only_an_account(statement)
            if not own:
                yield from ((path, message) for message in unnamed_actions(statement))
    if resource.type == PERMISSION and not exact(str(resource.inputs.get("principal", ""))):
        yield "principal", "allows everybody; name the service or the account"


@rule("federated-subjects", ROLE)
def federated_subjects(resource: Resource) -> Iterator[Violation]:
    """A role for an identity provider's users names them: the subject, and for whom the token was made."""
    for statement in allowing(resource.inputs.get(TRUST)):
        if statement.principals("Federated"):
            yield from ((TRUST, message) for message in any_subject(statement, SUBJECT, AUDIENCE))


@rule("confused-deputy")
def confused_deputy(resource: Resource) -> Iterator[Violation]:
    """A service is let in for this account alone: it works for every other one, too."""
    trust = [(TRUST, resource.inputs.get(TRUST))] if resource.type == ROLE else []
    for path, policy in [*trust, *_policies(resource)]:
        for statement in allowing(policy):
            services = [] if narrowed(statement, *SOURCE_KEYS) else statement.principals("Service")
            yield from ((path, ANYBODYS.format(service)) for service in services if service not in SENDS_NO_SOURCE)
    if resource.type == PERMISSION and str(resource.inputs.get("principal", "")).endswith(".amazonaws.com"):
        account, arn = (str(resource.inputs.get(key, "")) for key in ("sourceAccount", "sourceArn"))
        if not _names_somebody("aws:sourceaccount", account) and not _names_somebody("aws:sourcearn", arn):
            yield "principal", ANYBODYS.format(resource.inputs["principal"])


@stack_rule("foreign-account")
def foreign_account(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """Another account takes a role only with an external id, or as one of the organisation."""
    own = own_accounts(stack)
    for role in stack.of(ROLE):
        for statement in allowing(role.inputs.get(TRUST)):
            for account in foreigners(statement, "AWS", own, enough=ENOUGH, callers=(ACCOUNT_KEYS, ARN_KEYS)):
                yield role, TRUST, f"lets account {account} in; require sts:ExternalId, or name the organisation"


def everybody(path: str, policy: Any) -> Iterator[Violation]:
    """What lets in whoever comes."""
    if statements(policy) is None:
        yield path, "cannot be read as a policy"
    for statement in allowing(policy):
        if "notprincipal" in statement.elements:
            yield path, "allows everybody but some (NotPrincipal); name those that are meant"
        elif statement.lets_in_anybody and not narrowed(statement):
            yield path, "allows everybody; name the principal, or narrow it by account or organisation"
        if path == TRUST:
            yield from ((path, message) for message in unnamed_actions(statement))


def narrowed(statement: Statement, *keys: str) -> bool:
    """Whether a condition names accounts, organisations, networks or callers, and nothing wild in their place.

    keys: patterns of those that count, all where none are given.
    """
    counting = keys or (ACCOUNT_KEYS, ARN_KEYS, ORGANISATION_KEYS, NETWORK_KEYS)
    return any(all(_names_somebody(test.key, value) for value in test.values) for test in statement.tests(*counting))


def _names_somebody(key: str, value: str) -> bool:
    if re.fullmatch(ACCOUNT_KEYS, key):
        return account_of(value) == value
    if re.fullmatch(ARN_KEYS, key):
        bucket = value.startswith("arn:") and ":s3:::" in value and not too_wide(value)
        return bucket or account_of(value) is not None
    if key.endswith("orgpaths"):
        return exact(value.partition("/")[0])
    return exact(value)


def _policies(resource: Resource) -> Iterator[tuple[str, Any]]:
    """The policies by which a resource of AWS lets others in, each with its input's name."""
    if resource.type in RESOURCE_POLICIES:
        policy = resource.inputs.get("policy")
        yield from [] if policy is None else [("policy", policy)]
    elif resource.type.startswith("aws:") and resource.type not in GIVES_NOTHING:
        for key in POLICY_KEYS:
            read = statements(resource.inputs.get(key)) or []
            if any({"principal", "notprincipal"} & set(each.elements) for each in read):
                yield key, resource.inputs[key]


def _only_an_account(statement: Statement) -> bool:
    """All of the principals are accounts as a whole."""
    named = statement.accounts("AWS")
    others = [*statement.principals("Service"), *statement.principals("Federated")]
    return bool(named) and not others and all(account_of(each) == each or each.endswith(":root") for each in named)
