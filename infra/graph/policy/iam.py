"""Nobody may do everything: policies name their actions and principals (IAM User Guide, "Security best practices").

A key's policy gives its account `kms:*`: without that nobody could ever manage it (KMS, "Default key policy").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.graph.policy.rule import Resource, Stack, Violation, rule
from infra.graph.policy.wire import items, mapping, nested

KEY, KEY_POLICY = "aws:kms/key:Key", "aws:kms/keyPolicy:KeyPolicy"
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

Statement = Mapping[str, Any]


@rule("wildcard-actions", *IDENTITY_POLICIES)
def wildcard_actions(resource: Resource, stack: Stack) -> Iterator[Violation]:
    yield from _identity("policy", resource.inputs.get("policy"))


@rule("wildcard-role", ROLE)
def wildcard_role(resource: Resource, stack: Stack) -> Iterator[Violation]:
    for path, inline in nested(resource.inputs, "inlinePolicies"):
        yield from _identity(f"{path}.policy", inline.get("policy"))
    for i, arn in enumerate(items(resource.inputs.get("managedPolicyArns"))):
        yield from _managed(f"managedPolicyArns[{i}]", arn)
    yield from _principals("assumeRolePolicy", resource.inputs.get("assumeRolePolicy"))


@rule("broad-managed-policy", *ATTACHMENTS)
def broad_managed_policy(resource: Resource, stack: Stack) -> Iterator[Violation]:
    yield from _managed("policyArn", resource.inputs.get("policyArn"))


@rule("wildcard-principals", *RESOURCE_POLICIES)
def wildcard_principals(resource: Resource, stack: Stack) -> Iterator[Violation]:
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
        if "iam:PassRole" in items(statement.get("Action")) and "*" in items(statement.get("Resource")):
            yield path, "allows iam:PassRole of any role; name the role"


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
