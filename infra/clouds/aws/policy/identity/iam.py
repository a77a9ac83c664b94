"""Policy rules on IAM permissions: policies name their actions and resources (IAM User Guide, "Security best
practices"), and allow no escalation of privileges. Trust policies are in `trust.py`.

A key's policy gives its account `kms:*`: without that the key could not be managed (KMS, "Default key policy").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infra.clouds.aws.policy.identity.powers import POWERS
from infra.policy.documents import Statement, allowing, exact, too_wide
from infra.policy.iam import escalations, wildcards
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import nested

POLICY = "aws:iam/policy:Policy"
IDENTITY_POLICIES = (
    POLICY,
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
)
ROLE = "aws:iam/role:Role"
ATTACHMENTS = (
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
PASS_ROLE, TAKE_ON_ROLE = "iam:passrole", "sts:assumerole"


@rule("wildcard-actions", *IDENTITY_POLICIES)
def wildcard_actions(resource: Resource) -> Iterator[Violation]:
    """A policy names its actions, and the resources of those that read, write or decide who may."""
    yield from wildcards("policy", resource.inputs.get("policy"), POWERS)


@rule("broad-managed-policy", *ATTACHMENTS)
def broad_managed_policy(resource: Resource) -> Iterator[Violation]:
    """No policy of AWS's but a few, and none that nobody can read here."""
    yield from managed("policyArn", resource.inputs.get("policyArn"), resource.references.get("policyArn", ()))


@rule("privilege-escalation", ROLE, *IDENTITY_POLICIES)
def privilege_escalation(resource: Resource) -> Iterator[Violation]:
    """Nobody may give himself rights: by policies, keys, trust, or a role that a service is handed."""
    own = [("policy", resource.inputs.get("policy"))]
    inline = ((f"{path}.policy", each.get("policy")) for path, each in nested(resource.inputs, "inlinePolicies"))
    for path, policy in [*own, *inline]:
        yield from escalations(path, policy, POWERS)
        for statement in allowing(policy):
            if PASS_ROLE in map(str.lower, statement.actions):
                yield from ((path, message) for message in _passing(statement))


def _passing(statement: Statement) -> Iterator[str]:
    """A role is passed by name, to a service that is named (IAM User Guide, "Grant permissions to pass a role")."""
    if not statement.resources or any(map(too_wide, statement.resources)):
        yield "passes any role; name the role"
    if not any(all(map(exact, test.values)) for test in statement.tests("iam:passedtoservice")):
        yield "passes a role to any service; name the service (iam:PassedToService)"


def managed(path: str, arn: Any, made_of: Sequence[str]) -> Iterator[Violation]:
    """made_of: the URNs that the ARN came from; a policy of this stack is read where it is declared."""
    text = str(arn)
    if any(f"{POLICY}::" in urn for urn in made_of):
        return
    if not text.startswith("arn:"):
        yield path, f"cannot be read: {text}; attach a policy of this stack, or name one by its ARN"
    elif ":iam::aws:" in text and not POWERS.managed.match(text.partition(":policy/")[2]):
        yield path, f"{arn} allows far more than a node needs; name the actions"
