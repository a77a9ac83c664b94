"""Nobody may do everything: policies name their actions and principals (IAM User Guide, "Security best practices").

A key's policy gives its account `kms:*`: without that nobody could ever manage it (KMS, "Default key policy").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.graph.policy.rule import Resource, Violation, rule
from infra.graph.policy.wire import KEY, items, mapping, nested

KEY_POLICY = "aws:kms/keyPolicy:KeyPolicy"
IDENTITY_POLICIES = (
    "aws:iam/policy:Policy",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
)
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
ROLE = "aws:iam/role:Role"
ATTACHMENTS = (
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
BROAD_MANAGED = re.compile(r":iam::aws:policy/(?:.*/)?(AdministratorAccess\b.*|PowerUserAccess|\w*FullAccess\w*)$")
ACCOUNT = re.compile(r"(arn:aws[\w-]*:iam::)?(\d{12}|\$\{[^}]+\})(:root)?")
NARROWING = ("StringEquals", "StringLike", "ArnEquals", "ArnLike")
NARROWING_KEYS = re.compile(r"(?i)(aws:(Source|Principal)(Account|Arn|OrgID|OrgPaths|Vpce|Vpc)|kms:CallerAccount)")

# Actions that read or write what is kept, or decide who may do what: they know a resource (Service Authorization
# Reference), so a policy names it.
OF_A_RESOURCE = re.compile(
    r"(?i)s3:(Get|Put|Delete|Restore)Object\w*|s3:ListBucket\w*|s3:PutBucket\w*"
    r"|kms:(Decrypt|Encrypt|GenerateDataKey\w*|ReEncrypt\w*|CreateGrant|PutKeyPolicy|ScheduleKeyDeletion)"
    r"|secretsmanager:(Get|Put)SecretValue|ssm:(Get|Put)Parameter\w*|ssm:(SendCommand|StartSession)"
    r"|sts:AssumeRole\w*|iam:(PassRole|(Create|Update|Attach|Put|Add|Set)\w+)|sqs:(Send|Receive|Delete)Message\w*"
)
ANY_RESOURCE = re.compile(r"\*|arn:aws[\w-]*:[^:]*:[^:]*:[^:]*:(\*|(key|role|user|parameter)/\*|secret:\*)(/\*)?")
WEB_IDENTITY = "sts:AssumeRoleWithWebIdentity"

Statement = Mapping[str, Any]


@rule("wildcard-actions", *IDENTITY_POLICIES)
def wildcard_actions(resource: Resource) -> Iterator[Violation]:
    """A policy names its actions, and the resources of those that read, write or decide who may."""
    yield from _identity("policy", resource.inputs.get("policy"))


@rule("wildcard-role", ROLE)
def wildcard_role(resource: Resource) -> Iterator[Violation]:
    """A role names who may take it, and what it may do."""
    for path, inline in nested(resource.inputs, "inlinePolicies"):
        yield from _identity(f"{path}.policy", inline.get("policy"))
    for i, arn in enumerate(items(resource.inputs.get("managedPolicyArns"))):
        yield from _managed(f"managedPolicyArns[{i}]", arn)
    yield from _principals("assumeRolePolicy", resource.inputs.get("assumeRolePolicy"))


@rule("broad-managed-policy", *ATTACHMENTS)
def broad_managed_policy(resource: Resource) -> Iterator[Violation]:
    """No policy of AWS's that allows far more than a node needs."""
    yield from _managed("policyArn", resource.inputs.get("policyArn"))


@rule("wildcard-principals", *RESOURCE_POLICIES)
def wildcard_principals(resource: Resource) -> Iterator[Violation]:
    """A resource without a policy is its own account's; one with a policy lets in those that it names."""
    if (policy := resource.inputs.get("policy")) is None:
        return
    yield from _principals("policy", policy)
    key = resource.type in (KEY, KEY_POLICY)
    for statement in _allows(policy):
        for action in _wild(statement):
            if not (key and action == "kms:*" and _only_the_account(statement)):
                yield "policy", f"allows {action}; name the actions"


def _identity(path: str, policy: Any) -> Iterator[Violation]:
    if _statements(policy) is None:
        yield path, "cannot be read as a policy"
    for statement in _allows(policy):
        for action in _wild(statement):
            yield path, f"allows {action}; name the actions"
        if "NotResource" in statement:
            yield path, "allows all resources but some (NotResource); name those that are meant"
        yield from ((path, message) for message in _everywhere(statement))


def _managed(path: str, arn: Any) -> Iterator[Violation]:
    if isinstance(arn, str) and BROAD_MANAGED.search(arn):
        yield path, f"{arn} allows far more than a node needs; name the actions"


def _principals(path: str, policy: Any) -> Iterator[Violation]:
    if _statements(policy) is None:
        yield path, "cannot be read as a policy"
    for statement in _allows(policy):
        if "NotPrincipal" in statement:
            yield path, "allows everybody but some (NotPrincipal); name those that are meant"
        if _everybody(statement.get("Principal")) and not _narrowed(statement):
            yield path, "allows everybody; name the principal, or narrow it by account or organisation"
        if WEB_IDENTITY in items(statement.get("Action")) and _any_subject(statement):
            yield path, "allows whoever its identity provider knows; name the subject (a condition on `:sub`)"


def _statements(policy: Any) -> list[Any] | None:
    """None for what cannot be read, an unknown or a secret among it."""
    try:
        document = json.loads(policy) if isinstance(policy, str) else policy
    except ValueError:
        return None
    return items(document.get("Statement")) if isinstance(document, Mapping) else None


def _allows(policy: Any) -> Iterator[Statement]:
    return (mapping(one) for one in _statements(policy) or () if mapping(one).get("Effect") == "Allow")


def _wild(statement: Statement) -> Iterator[str]:
    """The actions that stand for more than one, and the word that allows all but some."""
    yield from (str(action) for action in items(statement.get("Action")) if set("*?") & set(str(action)))
    if "NotAction" in statement:
        yield "all actions but some (NotAction)"


def _everywhere(statement: Statement) -> Iterator[str]:
    """Actions on every resource there is, where a condition does not narrow them."""
    if any(ANY_RESOURCE.fullmatch(str(each)) for each in items(statement.get("Resource"))) and not _narrowed(statement):
        for action in items(statement.get("Action")):
            if OF_A_RESOURCE.fullmatch(str(action)):
                yield f"allows {action} on every resource; name those that are meant"


def _any_subject(statement: Statement) -> bool:
    """Whether whoever the identity provider knows is let in: each repository of the world, each pod of the cluster."""
    subjects = [
        value
        for operator in ("StringEquals", "StringLike")
        for key, values in mapping(mapping(statement.get("Condition")).get(operator)).items()
        if key.endswith(":sub")
        for value in items(values)
    ]
    return not subjects or any(str(subject) in ("*", "repo:*", "system:serviceaccount:*") for subject in subjects)


def _everybody(principal: Any) -> bool:
    named = principal.values() if isinstance(principal, Mapping) else [principal]
    return any("*" in items(names) for names in named)


def _only_the_account(statement: Statement) -> bool:
    principal = mapping(statement.get("Principal"))
    return list(principal) == ["AWS"] and all(ACCOUNT.fullmatch(str(name)) for name in items(principal["AWS"]))


def _narrowed(statement: Statement) -> bool:
    """Whether a condition names accounts, organisations, networks or callers, without a wildcard in their place."""
    condition = mapping(statement.get("Condition"))
    return any(
        NARROWING_KEYS.fullmatch(key) and all(set(str(value)) - set("*?") for value in items(values))
        for operator in NARROWING
        for key, values in mapping(condition.get(operator)).items()
    )
