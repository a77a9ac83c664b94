"""What every cloud's stack file has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationInfo

from infra.spec.errors import ContradictionError, Mistake
from infra.spec.fields import Limit, PublicKey


class Section(BaseModel):
    """A mapping of the stack file: frozen, and no key that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Access(Section):
    """Who may log in, beside the key pair that every cluster makes for itself."""

    public_key: PublicKey | None = None


class Budget(Section):
    """The most the cluster may cost an hour and a month, in the currency that its cloud bills."""

    hourly: Limit | None = None
    monthly: Limit | None = None


class Cluster(Section):
    """The part of a stack file that no cloud words differently."""

    access: Access = Access()
    budget: Budget | None = None


class Named(Protocol):
    """Something of a list that is known by its name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def at_least_one(items: tuple[N, ...]) -> tuple[N, ...]:
    """Raises ValueError for an empty list. (A length limit of the field would also count the items that are wrong.)"""
    if not items:
        raise ValueError("is empty; it needs at least one entry")
    return items


def unique_names(items: tuple[N, ...], info: ValidationInfo) -> tuple[N, ...]:
    """Raises ContradictionError for every item that bears the name of an earlier one."""
    if mistakes := list(repeated_names(items, str(info.field_name))):
        raise ContradictionError(mistakes)
    return items


def repeated_names(items: Sequence[Named], whole: str) -> Iterator[Mistake]:
    """The mistakes of a list, called `whole`, whose items need different names."""
    names = [item.name for item in items]
    for i, name in enumerate(names):
        if (first := names.index(name)) < i:
            yield (i, "name"), f"'{name}' is the name of {whole}[{first}] already"
