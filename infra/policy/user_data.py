"""User data and tags hold no secrets: every process on the node, and everyone who may describe it, can read them.

Sources: EC2 User Guide, "Run commands when you launch an EC2 instance with user data input" (not protected) and "Tag
your Amazon EC2 resources" (not for sensitive data); the documented forms of the tokens of GitHub, GitLab, Hugging
Face and Slack.
"""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from infra.policy import tables
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import mapping, nested

KEYS = ("userData", "userDataBase64")
GZIP = b"\x1f\x8b"
SECRETS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    "a token of GitLab": r"\bglpat-[\w-]{16,}",
    "a token of Hugging Face": r"\bhf_[A-Za-z0-9]{30,}",
    "a token of Slack": r"\bxox[abprs]-[\w-]{10,}",
    "a signed web token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.",
    "a password in an address": r"\b[a-z][a-z0-9+.-]*://[^\s/:@$]+:[^\s/@$]+@",
    "a key of Weights & Biases": r"\bwandb\s+login\b[^\n]*\b[0-9a-f]{40}\b",
    "a password for a login": r"[\w-]+:[^\s:|$]+[\"']?\s*\|\s*(?:sudo\s+)?chpasswd\b",
    "a secret": (
        r"(?i)(?:password|passwd|passphrase|secret_?access_?key|api_?key|access_?token|auth_?token|secret|token)"
        r"[\"']?\s*[=:]\s*[\"']?(?![$<{\[\"'])[^\s\"'$]{8,}"
    ),
}


@rule("secrets-in-user-data", *tables.of_every_cloud().with_user_data)
def secrets_in_user_data(resource: Resource) -> Iterator[Violation]:
    """User data holds no secret, plain, encoded or compressed."""
    for key in KEYS:
        if what := secret_in(_text(resource.inputs.get(key))):
            yield key, f"seems to hold {what}: everybody who may describe the node reads it; let its role fetch it"


@rule("secrets-in-tags")
def secrets_in_tags(resource: Resource) -> Iterator[Violation]:
    """Tags hold no secret: whoever may list things reads them, and bills repeat them."""
    own = [("tags", mapping(resource.inputs.get("tags")))]
    specified = nested(resource.inputs, "tagSpecifications")
    for path, tags in [*own, *((f"{path}.tags", mapping(each.get("tags"))) for path, each in specified)]:
        for key, value in tags.items():
            if what := secret_in(f"{key}={value}"):
                yield f"{path}.{key}", f"seems to hold {what}: everybody who may list it reads it"


def secret_in(text: str) -> str | None:
    """What kind of secret a text seems to hold."""
    patterns = {**tables.of_every_cloud().secrets, **SECRETS}
    return next((what for what, pattern in patterns.items() if re.search(pattern, text)), None)


def _text(value: Any) -> str:
    """User data as the node sees it: plain, base64 or compressed."""
    if not isinstance(value, str):
        return ""
    try:
        content = b64decode(value, validate=True)
    except binascii.Error:
        return value
    try:
        return (zlib.decompress(content, wbits=31) if content.startswith(GZIP) else content).decode(errors="replace")
    except zlib.error:
        return value
