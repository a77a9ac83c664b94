"""What actions of a policy are as good as: being an administrator, running code, or nothing that a node must not have.

`*` stands for any letters, as in a policy. Each cloud has a table of its own actions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate


def any_of(text: str) -> re.Pattern[str]:
    """Patterns between blanks, as one that takes letters of either case."""
    return re.compile("|".join(map(translate, text.split())), re.IGNORECASE)


LOOKS = any_of("*:Describe* *:List*")
NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, kw_only=True)
class Powers:
    """A cloud's actions.

    grants: whoever may do this to one role, user or policy has whatever that one may be given. grant_limits: condition
    keys that say what may be given. runs_code: whoever may do this to a machine or a job runs code there, with its
    role; by what it does. looks: actions that give nothing away. looks_at_data: those of them that do. harmless:
    actions that know no resource, and that nodes need. harmless_on: actions with a resource, as `action resource`,
    which may stand for all of its kind. which_resource: condition keys by which a statement about every resource means
    some of them after all. managed: policies that the cloud keeps, and may widen at any time: these few are what nodes
    and pods are known to need.
    """

    grants: re.Pattern[str]
    grant_limits: tuple[str, ...] = ()
    runs_code: Mapping[str, re.Pattern[str]]
    looks: re.Pattern[str]
    looks_at_data: re.Pattern[str]
    harmless: re.Pattern[str]
    harmless_on: re.Pattern[str] = NOTHING
    which_resource: tuple[str, ...]
    managed: re.Pattern[str]

    def reason(self, action: str) -> str:
        """The privilege that an action amounts to, in a few words; "" for others."""
        return next((what for what, actions in self.runs_code.items() if actions.match(action)), "")

    def about_everything(self, action: str, resource: str) -> bool:
        """Whether an action may be allowed on a resource that stands for every one.

        Everything that no table names is refused there, actions that came after the tables too.
        """
        if self.looks_at_data.match(action):
            return False
        on_its_kind = self.harmless_on.fullmatch(f"{action} {resource}")
        return bool(LOOKS.match(action) or self.looks.match(action) or self.harmless.match(action) or on_its_kind)
