"""OpenSSH public keys, checked to the last byte: a broken one would show only when every login fails."""

from __future__ import annotations

import base64
import binascii
import re

from infra.suggest import nearest

# The length-prefixed fields of a key's body after its type, with their lengths in bytes (None: any). Sources: RFC 4253
# 6.6 (rsa), RFC 5656 3.1 (ecdsa), RFC 8709 4 (ed25519), OpenSSH PROTOCOL.u2f (sk-).
FIELDS: dict[str, tuple[int | None, ...]] = {
    "ssh-ed25519": (32,),
    "ssh-rsa": (None, None),
    "ecdsa-sha2-nistp256": (8, 65),
    "ecdsa-sha2-nistp384": (8, 97),
    "ecdsa-sha2-nistp521": (8, 133),
    "sk-ssh-ed25519@openssh.com": (32, None),
    "sk-ecdsa-sha2-nistp256@openssh.com": (8, 65, None),
}
COMMENT = r"[\w@.,:+=/() -]*"


def looks_private(text: str) -> bool:
    """Whether the text is, or holds, a private key: such text must never be printed."""
    return "PRIVATE KEY" in text or "b3BlbnNzaC1rZXkt" in text  # the second: "openssh-key-" in base64


def checked_public_key(text: str) -> str:
    """The key, if it is one line `type base64 [comment]` whose body is a whole key of that type.

    Raises ValueError with one clear line that never repeats the text itself.
    """
    if looks_private(text):
        raise ValueError("is a private key: keep it secret, and give the one line of its .pub file instead")
    if not text.isprintable():
        raise ValueError("must be the one line of a .pub file, without line breaks or control characters")
    kind, _, rest = text.partition(" ")
    if kind not in FIELDS:
        meant = nearest(kind, FIELDS)
        raise ValueError(
            f"begins with '{kind}'; did you mean '{meant}'?"
            if meant
            else "must be the one line of a .pub file; it begins with the key's type, such as ssh-ed25519"
        )
    try:
        body = base64.b64decode(rest.partition(" ")[0], validate=True)
    except binascii.Error:
        raise ValueError(f"the part after {kind} is not base64: copy the .pub file's line whole") from None
    if not body:
        raise ValueError(f"nothing follows {kind}: copy the .pub file's line whole")
    fields = _fields(body)
    if fields is None:
        raise ValueError("the key is cut off or has something too much: copy the .pub file's line whole")
    if fields[0] != kind.encode():
        raise ValueError(f"says {kind}, but the key inside is of another type")
    lengths = tuple(map(len, fields[1:]))
    expected = FIELDS[kind]
    if len(lengths) != len(expected) or any(
        want not in (None, have) for want, have in zip(expected, lengths, strict=True)
    ):
        raise ValueError(f"the key inside is not a whole {kind} key: copy the .pub file's line whole")
    if not re.fullmatch(COMMENT, rest.partition(" ")[2], re.ASCII):
        raise ValueError("the comment behind the key may have letters, digits and @ . , : + = / ( ) - _: leave it out")
    return text


def _fields(body: bytes) -> list[bytes] | None:
    """The body's strings, each behind its length in four bytes (RFC 4251, 5), None if they do not fill it exactly."""
    fields: list[bytes] = []
    while body:
        length = int.from_bytes(body[:4], "big")
        if len(body) < 4 + length:
            return None
        fields.append(body[4 : 4 + length])
        body = body[4 + length :]
    return fields
