"""Who is let in by a policy: subjects of identity providers, and other accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from infra.policy.documents import Statement, account_of, exact, plain
from infra.policy.rule import Stack

MEANING = re.compile(r"[A-Za-z0-9]{3}")


def any_subject(statement: Statement, subject: str, audience: str) -> Iterator[str]:
    """Whether more than one repository, namespace or project is let in. subject, audience: patterns of their keys."""
    if not any(all(map(names_a_subject, test.values)) for test in statement.tests(subject)):
        yield "allows whoever its identity provider knows; name the subject (a condition on `:sub`)"
    if not any(all(map(exact, test.values)) for test in statement.tests(audience)):
        yield "allows tokens that were made for others; name the audience (a condition on `:aud`)"


def names_a_subject(subject: str) -> bool:
    """Whether a subject is of one repository and one kind of run, of one namespace, or of one project."""
    text = plain(subject)
    if exact(subject):
        return True
    if text.startswith("repo:"):
        run = re.fullmatch(r"repo:[^/:*?]+/[^/:*?]+:(.+)", text)
        return run is not None and MEANING.search(run[1]) is not None
    if text.startswith("system:"):
        return re.match(r"system:serviceaccount:[^:*?]+:", text) is not None
    return re.match(r"[^:*?]+:[^:*?]{3,}:", text) is not None


def foreigners(
    statement: Statement, kind: str, own: set[str], *, enough: Sequence[str], callers: Sequence[str] = ()
) -> Iterator[str]:
    """Accounts that are let in, whose numbers stand there and are none of the stack's own.

    kind: what accounts are called among principals. enough: patterns of condition keys that let another account in
    safely. callers: of those that name who calls, which tell the accounts where the principal is anybody.
    """
    if any(all(map(exact, test.values)) for test in statement.tests(*enough)):
        return
    named = statement.accounts(kind)
    if statement.lets_in_anybody:
        named += [value for test in statement.tests(*callers) for value in test.values]
    for account in dict.fromkeys(map(account_of, named)):
        if account is not None and account.isdecimal() and account not in own:
            yield account


def own_accounts(stack: Stack) -> set[str]:
    """The account that the engine knows the stack's resources by; none in a plan, which writes it by reference."""
    names = (str(resource.inputs.get(key, "")) for resource in stack.resources for key in ("arn", "ownerId"))
    return {account for text in names if (account := account_of(text)) is not None}
