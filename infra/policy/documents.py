"""Policy documents of IAM and RAM, read as data; and what a name with wildcards in it still names.

Sources: IAM User Guide, "IAM JSON policy elements reference" (a policy variable is filled in from the caller, so it
names nobody), "Condition operators" (`...IfExists` and `ForAllValues:` are true where the key is missing) and
"Resource" (`*` goes past a slash); RAM User Guide, "Policy elements".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.policy.tables import ArnForm, of_every_cloud
from infra.policy.wire import items, mapping

WILD = frozenset("*?")
NOT_KNOWN = ("[unknown]", "[secret]")
ACTION = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9]+")
NAMING = ("stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike")
LEAST_PREFIX, LEAST_RUN = 2, 3  # letters or digits: fewer stand in every other name


@dataclass(frozen=True)
class Test:
    """One line of a condition. operator, key: in lower case, as both clouds take them in any."""

    operator: str
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """One statement. elements: by their names in lower case. Whatever does not deny, allows."""

    elements: Mapping[str, Any]

    def texts(self, element: str) -> list[str]:
        return [str(each) for each in items(self.elements.get(element))]

    @property
    def allows(self) -> bool:
        return self.elements.get("effect") != "Deny"

    @property
    def actions(self) -> list[str]:
        return self.texts("action")

    @property
    def resources(self) -> list[str]:
        return self.texts("resource")

    def principals(self, kind: str) -> list[str]:
        """Those of a kind, such as Service or Federated; none of a bare list, which is of accounts."""
        named = self.elements.get("principal")
        if isinstance(named, Mapping):
            return [
                str(each) for key, names in named.items() if str(key).lower() == kind.lower() for each in items(names)
            ]
        return []

    def accounts(self, kind: str) -> list[str]:
        """Those of the kind that stands for accounts; a bare list is of them."""
        bare = not isinstance(self.elements.get("principal"), Mapping)
        return self.texts("principal") if bare else self.principals(kind)

    @property
    def lets_in_anybody(self) -> bool:
        """Whether a principal is a pattern, or there is none that can be read."""
        named = self.elements.get("principal")
        each = (
            [name for names in named.values() for name in items(names)] if isinstance(named, Mapping) else items(named)
        )
        return not each or any(WILD & set(plain(str(name))) or str(name) in NOT_KNOWN for name in each)

    def tests(self, *keys: str) -> Iterator[Test]:
        """The tests of these keys (patterns, lower case) that a request cannot pass by leaving the key out."""
        for operator, lines in mapping(self.elements.get("condition")).items():
            name = str(operator).lower().removeprefix("foranyvalue:")
            for key, values in mapping(lines).items():
                test = Test(name, str(key).lower(), tuple(str(each) for each in items(values)))
                if name in NAMING and test.values and any(re.fullmatch(each, test.key) for each in keys):
                    yield test


def statements(policy: Any) -> list[Statement] | None:
    """None for what cannot be read: an unknown or a secret, no JSON, an element that is there twice."""
    try:
        document = json.loads(policy, object_pairs_hook=_once) if isinstance(policy, str) else policy
        if not isinstance(document, Mapping):
            return None
        listed = items(_lower(document).get("statement"))
        if not all(isinstance(each, Mapping) for each in listed):
            return None
        return [Statement(_lower(each)) for each in listed]
    except ValueError:
        return None


def allowing(policy: Any) -> list[Statement]:
    return [each for each in statements(policy) or () if each.allows]


def plain(text: str) -> str:
    """The text with a placeholder for what the stack fills in, and a star for what the caller fills in."""
    return re.sub(r"\$\{[^}]*\}", "*", re.sub(r"\$\{[^}:]*\}", "known", text))


def named(text: str) -> bool:
    """Whether a text has no wildcard, or so many letters beside them that it means something."""
    text = plain(text)
    if not text or text in NOT_KNOWN:
        return False
    return (
        not WILD & set(text) or _prefix(text) >= LEAST_PREFIX or bool(re.search(rf"[A-Za-z0-9]{{{LEAST_RUN}}}", text))
    )


def exact(text: str) -> bool:
    """Whether a text is known and has no wildcard."""
    return bool(text) and text not in NOT_KNOWN and not WILD & set(plain(text))


def too_wide(resource: str) -> bool:
    """Whether an ARN stands for everything there is, all of a service's, or all of a type's."""
    text = plain(resource)
    if text in NOT_KNOWN:
        return True
    if not WILD & set(text) or text.startswith("known"):
        return False
    form, parts = _parts(text)
    if form is None or WILD & set(parts[-4]):
        return True
    service, account, name = parts[-4], parts[-2], parts[-1]
    if service == "iam" and WILD & set(account):
        return True
    if service in form.flat:
        first = name.partition("/")[0]
        return _prefix(first) < (LEAST_PREFIX if WILD & set(first) else 1)
    kind_and_name = re.split(r"[/:]", name, maxsplit=1)
    return bool(WILD & set(name)) if len(kind_and_name) == 1 else not named(kind_and_name[1])


def account_of(text: str) -> str | None:
    """The account that an ARN or a number names: its digits, or the stack's placeholder; None where it is open."""
    if re.fullmatch(r"\d{12,16}|\$\{[^}:]+\}", text):
        return text
    bare = re.sub(r"\$\{[^}:]*:[^}]*\}", "*", text)  # filled in from the caller
    form, parts = _parts(bare)
    return parts[-2] if form is not None and exact(parts[-2]) else None


def _parts(text: str) -> tuple[ArnForm | None, list[str]]:
    """The parts of a resource's name, and its form: None for a text that has none."""
    for form in of_every_cloud().arns:
        parts = text.split(":", form.parts - 1)
        if parts[0] == form.prefix and len(parts) == form.parts:
            return form, parts
    return None, [text]


def _prefix(text: str) -> int:
    """How many letters and digits come before the first wildcard."""
    return len(re.findall(r"[A-Za-z0-9]", re.split(r"[*?]", text, maxsplit=1)[0]))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("an element is there twice")
    return dict(pairs)


def _lower(elements: Mapping[str, Any]) -> dict[str, Any]:
    return _once([(str(key).lower(), value) for key, value in elements.items()])
