"""What policies of roles allow without naming it, and whether they allow to give rights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from infra.policy.documents import ACTION, Statement, allowing, exact, named, statements, too_wide
from infra.policy.powers import Powers
from infra.policy.rule import Violation

TAKE_ON_ROLE = "sts:assumerole"


def wildcards(path: str, policy: Any, powers: Powers) -> Iterator[Violation]:
    """What a policy allows without naming it."""
    if statements(policy) is None:
        yield path, "cannot be read as a policy"
    for statement in allowing(policy):
        yield from ((path, message) for message in unnamed_actions(statement))
        if "notresource" in statement.elements:
            yield path, "allows all resources but some (NotResource); name those that are meant"
        yield from ((path, message) for message in everywhere(statement, powers))


def unnamed_actions(statement: Statement) -> Iterator[str]:
    """The actions with wildcards or unknown values, and `NotAction`."""
    for action in statement.actions:
        if not ACTION.fullmatch(action):
            yield f"allows {action}; name the actions"
    if "notaction" in statement.elements:
        yield "allows all actions but some (NotAction); name the actions"


def everywhere(statement: Statement, powers: Powers) -> Iterator[str]:
    """Actions on every resource there is, or of a type, where no condition says which."""
    wide = [each for each in statement.resources if too_wide(each)]
    if any(all(map(named, test.values)) for test in statement.tests(*powers.which_resource)):
        return
    for action in statement.actions:
        if not all(powers.about_everything(action, resource) for resource in wide):
            why = f", which {powers.reason(action)}" if powers.reason(action) else ""
            yield f"allows {action} on every resource{why}; name those that are meant"


def escalations(path: str, policy: Any, powers: Powers) -> Iterator[Violation]:
    """Permissions of a policy by which its holder can become an administrator."""
    for statement in allowing(policy):
        limited = any(all(map(exact, test.values)) for test in statement.tests(*powers.grant_limits))
        for action in statement.actions:
            if powers.grants.match(action) and not limited:
                yield path, f"allows {action}, as good as being an administrator; leave it to those who deploy"
            if action.lower() == TAKE_ON_ROLE and not all(map(exact, statement.resources)):
                yield path, "takes on roles by a pattern; name the role"
