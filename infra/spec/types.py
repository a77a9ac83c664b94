"""The words a stack file is written in: each checks itself and says in one line what is wrong with a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from infra.spec.nearest import hint
from infra.spec.public_key import checked_public_key
from infra.spec.shown import quoted, shown

MIG_PROFILE = r"\d+g\.\d+gb(\+me)?"  # NVIDIA Multi-Instance GPU User Guide, "GPU instance"

NAME_LENGTH = 32  # leaves room for "-<number>" and a cloud's prefix within the 63 characters of a host name (RFC 1123)


def like(pattern: str, what: str) -> Callable[[str], str]:
    """A check against a pattern; `what` says what it stands for, with an example."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{quoted(text)} is no {what}")
        return text

    return check


def _name(text: str) -> str:
    if len(text) > NAME_LENGTH:
        raise ValueError(f"has {len(text)} characters; a name has at most {NAME_LENGTH}")
    if not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", text):
        raise ValueError(f"{quoted(text)} is no name: small letters, digits and inner hyphens, beginning with a letter")
    return text


def _absolute_path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(
            f"{quoted(text)} must be an absolute path, such as {quoted('/' + (text.strip('./') or 'data'))}"
        )
    parts = text.split("/")[1:]
    if not text.isprintable() or ":" in text or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{quoted(text)} must be a plain path: no '.', '..', '//', ':', no '/' at its end")
    return text


def _cidr(value: Any) -> IPv4Network:
    if not isinstance(value, str):
        raise ValueError(f"must be a network such as 10.0.0.0/16, not {shown(value)}")
    if "/" not in value:
        raise ValueError(f"{quoted(value)} needs its prefix length, such as {quoted(value + '/24')}")
    try:
        network = IPv4Network(value, strict=False)
    except (AddressValueError, NetmaskValueError):
        raise ValueError(f"{quoted(value)} is not an IPv4 network such as 10.0.0.0/16") from None
    if str(network) != value:
        raise ValueError(f"{quoted(value)} is not the network itself; did you mean '{network}'?")
    return network


def _key_file(text: str) -> str:
    if not text.startswith(("/", "~/")):
        raise ValueError(f"{quoted(text)} must begin with / or ~/")
    return like(r"[\w@%+=:,./~-]+", "plain path, such as ~/.ssh/id_ed25519")(text)


def _address(value: Any) -> IPv4Address:
    if not isinstance(value, str):
        raise ValueError(f"must be an address such as 10.0.0.11, not {shown(value)}")
    try:
        return IPv4Address(value)
    except AddressValueError:
        raise ValueError(f"{quoted(value)} is not an IPv4 address such as 10.0.0.11") from None


def _gpu_name(text: str) -> str:
    from infra.catalog import load  # a stack without GPUs needs no tables

    known = [gpu.name for gpu in load().gpus]
    if text not in known:
        raise ValueError(f"unknown GPU {quoted(text)}{hint(text, known)}")
    return text


Name = Annotated[str, AfterValidator(_name)]
GpuName = Annotated[str, AfterValidator(_gpu_name)]
AbsolutePath = Annotated[str, AfterValidator(_absolute_path)]
KeyFile = Annotated[str, AfterValidator(_key_file)]
Flag = Annotated[bool, Strict()]
PublicKey = Annotated[str, AfterValidator(checked_public_key)]
Cidr = Annotated[IPv4Network, BeforeValidator(_cidr)]
Address = Annotated[IPv4Address, BeforeValidator(_address)]
MigProfile = Annotated[str, AfterValidator(like(MIG_PROFILE, "MIG profile such as 3g.20gb"))]
Port = Annotated[int, Strict(), Field(ge=1, le=65535)]
Count = Annotated[int, Strict(), Field(ge=1)]
Limit = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
