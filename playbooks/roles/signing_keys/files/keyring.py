"""Run on a node as root: puts signing keys in place, and prints the files that changed, one a line.

Argument: a JSON list of {"url","fingerprint","file"}. A key is taken by its whole fingerprint (RFC 9580, section 5.5.4:
SHA-1 of the public key packet) and by nothing else, and a file with any other primary key in it is refused. A file
whose name ends with .asc keeps its ASCII armor: rpm takes keys in no other form.
"""

import base64
import hashlib
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

BEGIN, END = b"-----BEGIN", b"-----END PGP PUBLIC KEY BLOCK-----"
PUBLIC_KEY = 6
SECONDS = 60


def binary(data):
    """A key without its ASCII armor."""
    if not data.startswith(BEGIN):
        return data
    body = data.split(b"\n\n", 1)[1].split(b"\n=", 1)[0]
    return base64.b64decode(body.split(b"\n-----END", 1)[0])


def first_block(data):
    """The armor that `binary` has read, and nothing that may stand behind it. Empty without one."""
    block, end, _ = data.partition(END)
    return block + end + b"\n" if data.startswith(BEGIN) and end else b""


def packets(data):
    """The OpenPGP packets of a file: (tag, body)."""
    at = 0
    while at < len(data):
        head, size = data[at], data[at + 1]
        if head & 0x40:  # the newer form
            tag, at = head & 0x3F, at + 2
            if 192 <= size < 224:
                size, at = ((size - 192) << 8) + data[at] + 192, at + 1
            elif size == 255:
                size, at = int.from_bytes(data[at : at + 4], "big"), at + 4
        else:
            tag, width = (head & 0x3C) >> 2, 1 << (head & 3)
            size, at = int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width
        yield tag, data[at : at + size]
        at += size


def fingerprints(data):
    for tag, body in packets(data):
        if tag == PUBLIC_KEY:
            yield hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()


def wanted_form(data, key):
    return first_block(data) if key["file"].endswith(".asc") else binary(data)


def is_right(data, key):
    """Whether a file in its wanted form is this key."""
    try:
        return data == wanted_form(data, key) and list(fingerprints(binary(data))) == [key["fingerprint"].upper()]
    except IndexError:  # no OpenPGP
        return False


def fetched(key):
    try:
        with urllib.request.urlopen(key["url"], timeout=SECONDS) as answer:
            data = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        sys.exit(f"key: {key['url']}: {getattr(error, 'reason', error)}: check the mirror")
    data = wanted_form(data, key)
    if not is_right(data, key):
        sys.exit(f"key: {key['url']} is not {key['fingerprint']}: the mirror is wrong, or the key was rotated")
    return data


for key in json.loads(sys.argv[1]):
    file = Path(key["file"])
    if not file.exists() or not is_right(file.read_bytes(), key):
        data = fetched(key)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(data)
        fresh.chmod(0o644)
        fresh.replace(file)
        print(file)
