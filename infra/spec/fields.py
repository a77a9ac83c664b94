"""Types of the values of a stack file: each validates a value and reports in one line what is wrong with it.

Every text has its pattern, of ASCII alone: what a stack file holds ends up in shell lines, units of systemd and options
of mount(8) on machines, and in the variables of Ansible, which takes texts with braces for programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from infra.spec.errors import quoted, shown
from infra.spec.public_key import checked_public_key
from infra.suggest import hint

MIG_PROFILE = r"\d+g\.\d+gb(\+me)?"  # NVIDIA Multi-Instance GPU User Guide, "GPU instance"

STACK = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"  # the name of a stack
SEGMENT = r"[\w.][\w.+@-]*"  # of a path
NAME_LENGTH = 32  # leaves room for "-<number>" and a cloud's prefix within the 63 characters of a host name (RFC 1123)


def like(pattern: str, what: str) -> Callable[[str], str]:
    """A check against a pattern, in ASCII; `what` says what it stands for, with an example."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{quoted(text)} is no {what}")
        return text

    return check


def version_text(value: Any) -> Any:
    """A version that is a text. Raises ValueError for the number that YAML takes it for."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f'{shown(value)} is a number; write it in quotes, such as "1.35", or 1.40 would be 1.4')
    return value


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
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{quoted(text)} must be a plain path: no '.', '..', '//', no '/' at its end")
    if strange := next((part for part in parts if not re.fullmatch(SEGMENT, part, re.ASCII)), None):
        raise ValueError(
            f"{quoted(text)} must be a plain path: {quoted(strange)} may have ASCII letters, digits and . _ + @ -, "
            "and begin with none of + @ -; rename it, or link to it"
        )
    return text


def _mount_path(text: str) -> str:
    """The unit of a mount is named after its path, in which systemd.unit(5) spells other characters out."""
    if re.search(r"^/\.|[+@]", text):
        raise ValueError(f"{quoted(text)} must be a plain path for a mount: no + and @, no dot at its beginning")
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
    return like(r"~?(/[\w.+@=,-]+)+", "plain path, such as ~/.ssh/id_ed25519")(text)


def _sentence(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{quoted(text)} must be one line without control characters")
    return text


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
MountPath = Annotated[AbsolutePath, AfterValidator(_mount_path)]
KeyFile = Annotated[str, AfterValidator(_key_file)]
Sentence = Annotated[str, AfterValidator(_sentence)]
Flag = Annotated[bool, Strict()]
PublicKey = Annotated[str, AfterValidator(checked_public_key)]
Cidr = Annotated[IPv4Network, BeforeValidator(_cidr)]
Address = Annotated[IPv4Address, BeforeValidator(_address)]
MigProfile = Annotated[str, AfterValidator(like(MIG_PROFILE, "MIG profile such as 3g.20gb"))]
Port = Annotated[int, Strict(), Field(ge=1, le=65535)]
Count = Annotated[int, Strict(), Field(ge=1)]
Limit = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
