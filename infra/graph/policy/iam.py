"""Nobody may do everything: policies name their actions and what they are about (IAM User Guide, "Security best
practices"), and give nobody the right to give rights. Who may take a role is in `trust.py`.

A key's policy gives its account `kms:*`: without that nobody could ever manage it (KMS, "Default key policy").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infra.graph.policy.documents import ACTION, Statement, allowing, exact, named, statements, too_wide
from infra.graph.policy.powers import GRANT_LIMITS, GRANTS, MANAGED, WHICH_RESOURCE, about_everything, reason
from infra.graph.policy.rule import Resource, Violation, rule
from infra.graph.policy.wire import nested

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
    yield from wildcards("policy", resource.inputs.get("policy"))


@rule("broad-managed-policy", *ATTACHMENTS)
def broad_managed_policy(resource: Resource) -> Iterator[Violation]:
    """No policy of AWS's but a few, and none that nobody can read here."""
    yield from managed("policyArn", resource.inputs.get("policyArn"), resource.references.get("policyArn", ()))


@rule("privilege-escalation", ROLE, *IDENTITY_POLICIES)
def privilege_escalation(resource: Resource) -> Iterator[Violation]:
    """Nobody may give himself rights: by policies, keys, trust, or a role that a service is handed."""
    yield from escalations("policy", resource.inputs.get("policy"))
    for path, inline in nested(resource.inputs, "inlinePolicies"):
        yield from escalations(f"{path}.policy", inline.get("policy"))


def wildcards(path: str, policy: Any) -> Iterator[Violation]:
    """What a policy allows without naming it."""
    if statements(policy) is None:
        yield path, "cannot be read as a policy"
    for statement in allowing(policy):
        yield from ((path, message) for message in unnamed_actions(statement))
        if "notresource" in statement.elements:
            yield path, "allows all resources but some (NotResource); name those that are meant"
        yield from ((path, message) for message in everywhere(statement))


def unnamed_actions(statement: Statement) -> Iterator[str]:
    """The actions that stand for more than one or cannot be read, and the word that allows all but some."""
    for action in statement.actions:
        if not ACTION.fullmatch(action):
            yield f"allows {action}; name the actions"
    if "notaction" in statement.elements:
        yield "allows all actions but some (NotAction); name the actions"


def everywhere(statement: Statement) -> Iterator[str]:
    """Actions on every resource there is, or of a type, where no condition says which."""
    wide = [each for each in statement.resources if too_wide(each)]
    if any(all(map(named, test.values)) for test in statement.tests(*WHICH_RESOURCE)):
        return
    for action in statement.actions:
        if not all(about_everything(action, resource) for resource in wide):
            why = f", which {reason(action)}" if reason(action) else ""
            yield f"allows {action} on every resource{why}; name those that are meant"


def escalations(path: str, policy: Any) -> Iterator[Violation]:
    """What a policy allows that makes an administrator of whoever has it."""
    for statement in allowing(policy):
        limited = any(all(map(exact, test.values)) for test in statement.tests(*GRANT_LIMITS))
        for action in statement.actions:
            if GRANTS.match(action) and not limited:
                yield path, f"allows {action}, as good as being an administrator; leave it to those who deploy"
            if action.lower() == TAKE_ON_ROLE and not all(map(exact, statement.resources)):
                yield path, "takes on roles by a pattern; name the role"
            if action.lower() == PASS_ROLE:
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
    elif ":iam::aws:" in text and not MANAGED.match(text.partition(":policy/")[2]):
        yield path, f"{arn} allows far more than a node needs; name the actions"
