"""Policy rules on access at Alibaba Cloud: no permission for everything, roles and buckets only for named principals.

Sources: CIS Alibaba Cloud 2.0, 1.15 (no `*:*`); RAM User Guide, "Policy elements", "Edit the trust policy of a RAM
role", "Create a RAM role for a trusted Alibaba Cloud service" (a service is this account's, unless it is written
`account@service`), "Use ExternalId to prevent the confused deputy problem" and "Overview of OIDC-based SSO" (oidc:sub,
oidc:aud); ACK User Guide, "Use RRSA to authorize different pods to access different cloud services"; OSS User Guide,
"Bucket policy" and "RAM policies" (`oss:Prefix` of what is listed).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from infra.clouds.alicloud.policy.powers import POWERS
from infra.policy.documents import Statement, allowing, exact, plain, statements, too_wide
from infra.policy.iam import escalations, unnamed_actions, wildcards
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.trust import any_subject, foreigners, own_accounts

ROLE, POLICY = "alicloud:ram/role:Role", "alicloud:ram/policy:Policy"
BUCKET_POLICY = "alicloud:oss/bucketPolicy:BucketPolicy"
ATTACHMENTS = (
    "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment",
    "alicloud:ram/userPolicyAttachment:UserPolicyAttachment",
    "alicloud:ram/groupPolicyAttachment:GroupPolicyAttachment",
)
TRUST = "assumeRolePolicyDocument"
NETWORK_KEY = "acs:sourcevpc"
TO_PODS, SERVICE_ACCOUNT = "system:", r"system:serviceaccount:[^:*?]+:[^:*?]+"
POD_AUDIENCE = "sts.aliyuncs.com"
OBJECTS, BELOW = re.compile(r"acs:oss:[^:]*:[^:]*:([^/]+)(?:/(.*))?"), re.compile(r"[^*?/]+/.*")


@rule("alicloud-named-actions", POLICY)
def named_actions(resource: Resource) -> Iterator[Violation]:
    """A policy names its actions, and the resources of those that read, write or decide who may."""
    yield from wildcards("policyDocument", _permissions(resource), POWERS)


@rule("alicloud-privilege-escalation", POLICY)
def privilege_escalation(resource: Resource) -> Iterator[Violation]:
    """Nobody may give himself rights: by policies, keys, trust, or a role that a service is handed."""
    document = _permissions(resource)
    yield from escalations("policyDocument", document, POWERS)
    for statement in allowing(document):
        if "ram:passrole" in map(str.lower, statement.actions) and any(map(too_wide, statement.resources)):
            yield "policyDocument", "passes any role; name the role"


@rule("alicloud-named-principals", ROLE)
def named_principals(resource: Resource) -> Iterator[Violation]:
    """A role names who may take it."""
    yield from _everybody(TRUST, _trust(resource), "lets everybody take the role; name a service or an account")


@rule("alicloud-federated-subjects", ROLE)
def federated_subjects(resource: Resource) -> Iterator[Violation]:
    """A role for an identity provider's users names them: the subject, and for whom the token was made."""
    for statement in allowing(_trust(resource)):
        if statement.principals("Federated"):
            yield from ((TRUST, message) for message in any_subject(statement, "oidc:sub", "oidc:aud"))


@rule("alicloud-pod-roles", ROLE)
def pod_roles(resource: Resource) -> Iterator[Violation]:
    """A role for pods is of one service account of one cluster, by tokens that were made for STS."""
    for statement in allowing(_trust(resource)):
        if _of_pods(statement):
            if not _each(statement, "oidc:sub", lambda said: bool(re.fullmatch(SERVICE_ACCOUNT, plain(said)))):
                yield TRUST, "lets more than one service account in; name one (oidc:sub)"
            if not _each(statement, "oidc:aud", lambda said: said == POD_AUDIENCE):
                yield TRUST, f"takes tokens that were made for others; require oidc:aud {POD_AUDIENCE}"
            if not _each(statement, "oidc:iss", exact):
                yield TRUST, "takes tokens of any cluster; name the cluster's issuer (oidc:iss)"


@stack_rule("alicloud-pods-below-their-prefix")
def pods_below_their_prefix(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A role for pods uses, and lists, what lies below one prefix of a bucket."""
    for attachment in stack.of(*ATTACHMENTS):
        roles = _named(stack, attachment, "roleName", ROLE)
        if not any(_of_pods(each) for role in roles for each in allowing(_trust(role))):
            continue
        for policy in _named(stack, attachment, "policyName", POLICY):
            for statement in allowing(_permissions(policy)):
                yield from ((policy, "policyDocument", message) for message in _beside_a_prefix(statement))


@stack_rule("alicloud-foreign-account")
def foreign_account(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """Another account takes a role only with an external id, and another account's services never."""
    own = own_accounts(stack)
    for role in stack.of(ROLE):
        for statement in allowing(_trust(role)):
            for account in foreigners(statement, "RAM", own, enough=("sts:externalid",)):
                yield role, TRUST, f"lets account {account} in; require sts:ExternalId"
            for account, _, service in (each.partition("@") for each in statement.principals("Service")):
                if service and account not in own:
                    yield role, TRUST, f"lets {service} in for account {account}; name the service alone"


@rule("alicloud-private-bucket-policy", BUCKET_POLICY)
def private_bucket_policy(resource: Resource) -> Iterator[Violation]:
    """A bucket's policy lets in those that it names, from a network that it names otherwise."""
    yield from _everybody("policy", resource.inputs.get("policy"), "lets everybody in; name an account or a VPC")


@rule("alicloud-no-broad-policy", *ATTACHMENTS)
def no_broad_policy(resource: Resource) -> Iterator[Violation]:
    """No policy of the cloud's own but a few that give no data away."""
    name = str(resource.inputs.get("policyName", ""))
    if resource.inputs.get("policyType") != "Custom" and not POWERS.managed.match(name):
        yield "policyName", f"{name} allows far more than a node needs; name the actions"


def _of_pods(statement: Statement) -> bool:
    subjects = [value for test in statement.tests("oidc:sub") for value in test.values]
    return bool(statement.principals("Federated")) and any(said.startswith(TO_PODS) for said in subjects)


def _each(statement: Statement, key: str, sound: Callable[[str], bool]) -> bool:
    """Whether a condition on the key takes sound values alone."""
    return any(all(map(sound, test.values)) for test in statement.tests(key))


def _named(stack: Stack, attachment: Resource, key: str, kind: str) -> list[Resource]:
    """What an attachment names, by reference or by its name."""
    made_of = list(stack.made_of(attachment, key, kind))
    return made_of or [each for each in stack.of(kind) if each.inputs.get(key) == attachment.inputs.get(key)]


def _beside_a_prefix(statement: Statement) -> Iterator[str]:
    listed = _each(statement, "oss:prefix", lambda prefix: bool(BELOW.fullmatch(plain(prefix))))
    for resource in statement.resources:
        parts = OBJECTS.fullmatch(plain(resource))
        if parts is None:
            continue
        if parts[2] is None and not listed:
            yield f"lets pods list all of {parts[1]}; name their prefix (oss:Prefix)"
        if parts[2] is not None and not BELOW.fullmatch(parts[2]):
            yield f"lets pods use all of {parts[1]}; name their prefix"


def _everybody(path: str, policy: Any, message: str) -> Iterator[Violation]:
    if statements(policy) is None:
        yield path, "cannot be read as a policy"
    for statement in allowing(policy):
        placed = any(all(map(exact, test.values)) for test in statement.tests(NETWORK_KEY))
        if "notprincipal" in statement.elements or (statement.lets_in_anybody and not placed):
            yield path, message
        yield from ((path, each) for each in unnamed_actions(statement))


def _permissions(resource: Resource) -> Any:
    return resource.inputs.get("policyDocument") or resource.inputs.get("document")


def _trust(resource: Resource) -> Any:
    return resource.inputs.get(TRUST) or resource.inputs.get("document")
