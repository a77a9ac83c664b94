"""Nobody at Alibaba Cloud may do everything, and nobody takes a role or reads a bucket who was not named.

Sources: CIS Alibaba Cloud 2.0, 1.15 (no `*:*`); RAM User Guide, "Policy elements", "Edit the trust policy of a RAM
role", "Create a RAM role for a trusted Alibaba Cloud service" (a service is this account's, unless it is written
`account@service`), "Use ExternalId to prevent the confused deputy problem" and "Overview of OIDC-based SSO" (oidc:sub,
oidc:aud); OSS User Guide, "Bucket policy".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from infra.clouds.alicloud.policy.powers import POWERS
from infra.policy.documents import allowing, exact, statements, too_wide
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
