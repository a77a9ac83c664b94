"""Sessions at Alibaba Cloud: the stack's storage role, taken on with the node's role and narrowed to the places of a
grant.

Settings: as those of `aws`; the role's ARN is acs:ram::ACCOUNT:role/NAME. Sources: Alibaba Cloud SDK, "V3 request body
and signature" (ACS3-HMAC-SHA256); STS API, AssumeRole (a session may do what its role and `Policy` both allow; its
limits); ECS User Guide, "Access instance metadata" (security hardening mode) and "Instance RAM roles"; OSS User Guide,
"RAM policies" (which actions are about a bucket, and `oss:Prefix`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from itertools import groupby
from urllib.parse import quote, urlencode, urlsplit

import web
from grants import Grant, Place

MOST_POLICY = 2048  # characters, AssumeRole
TOKEN_SECONDS = 60
ALGORITHM = "ACS3-HMAC-SHA256"
SERVICE = "the metadata service"
CREDENTIALS = "/latest/meta-data/ram/security-credentials/"
FORM = "application/x-www-form-urlencoded"
CHANGE = ("oss:PutObject", "oss:DeleteObject", "oss:AbortMultipartUpload", "oss:ListParts")


def session(settings: dict, grant: Grant, seconds: int) -> dict:
    """Raises OSError where Alibaba Cloud does not answer or refuses, and ValueError for a grant that is too long."""
    form = {
        "RoleArn": settings["role"],
        "RoleSessionName": session_name(grant.login, settings["node"]),
        "DurationSeconds": str(seconds),
        "Policy": policy(grant),
    }
    body = urlencode(form, quote_via=quote).encode()
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    headers = signed(settings["sts"], body, role_credentials(settings["metadata"]), moment, secrets.token_hex(16))
    document = web.json_object(web.fetch(f"{settings['sts']}/", "POST", headers, body), "STS")
    names = {
        "AccessKeyId": "AccessKeyId",
        "SecretAccessKey": "AccessKeySecret",
        "SessionToken": "SecurityToken",
        "Expiration": "Expiration",
    }
    credentials = web.texts(document.get("Credentials"), names.values(), "STS")
    return {"Version": 1, **{ours: credentials[theirs] for ours, theirs in names.items()}}


def session_name(login: str, node: str) -> str:
    """What ActionTrail shows: 2 to 64 of letters, digits and .@-_ (STS API, AssumeRole)."""
    return re.sub(r"[^A-Za-z0-9.@_-]", "-", f"{login}@{node}")[:64]


def policy(grant: Grant) -> str:
    """The session policy. Which key is used is left to the role, which says it."""

    def objects(places: list[Place]) -> list[str]:
        return [f"acs:oss:*:*:{place.bucket}/{place.prefix}*" for place in places]

    def buckets(places: list[Place]) -> list[str]:
        return list(dict.fromkeys(f"acs:oss:*:*:{place.bucket}" for place in places))

    places = sorted(grant.places, key=lambda place: place.prefix)
    writable = [place for place in places if place.mode != "read"]
    uploaded = [place for place in places if place.mode == "upload"]
    statements = [
        {
            "Effect": "Allow",
            "Action": "oss:ListObjects",
            "Resource": buckets(list(same)),
            "Condition": {"StringLike": {"oss:Prefix": f"{prefix}*"}},
        }
        for prefix, same in groupby(places, key=lambda place: place.prefix)
    ]
    statements += [
        {"Effect": "Allow", "Action": "oss:GetObject", "Resource": objects(places)},
        {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": "*"},
    ]
    if writable:
        statements.append({"Effect": "Allow", "Action": list(CHANGE), "Resource": objects(writable)})
    if uploaded:
        statements.append({"Effect": "Allow", "Action": "oss:ListMultipartUploads", "Resource": buckets(uploaded)})
    text = json.dumps({"Version": "1", "Statement": statements}, separators=(",", ":"))
    if len(text) > MOST_POLICY:
        raise ValueError(
            f"{len(places)} places make a session policy of {len(text)} characters; Alibaba Cloud takes {MOST_POLICY}"
        )
    return text


def role_credentials(metadata: str) -> dict:
    """Those of the node's role, in security hardening mode. Raises OSError."""
    ttl = {"X-aliyun-ecs-metadata-token-ttl-seconds": str(TOKEN_SECONDS)}
    token = web.word(web.fetch(f"{metadata}/latest/api/token", "PUT", ttl, b""), SERVICE)
    headers = {"X-aliyun-ecs-metadata-token": token}
    roles = web.fetch(f"{metadata}{CREDENTIALS}", "GET", headers).split()
    if not roles:
        raise OSError("the node has no role")
    answer = web.fetch(f"{metadata}{CREDENTIALS}{web.word(roles[0], SERVICE)}", "GET", headers)
    return web.texts(web.json_object(answer, SERVICE), ("AccessKeyId", "AccessKeySecret", "SecurityToken"), SERVICE)


def signed(url: str, body: bytes, credentials: dict, moment: str, nonce: str) -> dict[str, str]:
    """The headers of a POST to STS, with its signature. nonce: no two requests have the same."""
    digest = hashlib.sha256(body).hexdigest()
    headers = {
        "accept": "application/json",
        "content-type": FORM,
        "host": urlsplit(url).netloc,
        "x-acs-action": "AssumeRole",
        "x-acs-content-sha256": digest,
        "x-acs-date": moment,
        "x-acs-security-token": credentials["SecurityToken"],
        "x-acs-signature-nonce": nonce,
        "x-acs-version": "2015-04-01",
    }
    names = [name for name in sorted(headers) if name.startswith("x-acs-") or name in ("content-type", "host")]
    listed = ";".join(names)
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in names)
    request = "\n".join(["POST", "/", "", lines, listed, digest])
    text = f"{ALGORITHM}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(credentials["AccessKeySecret"].encode(), text.encode(), hashlib.sha256).hexdigest()
    said = f"Credential={credentials['AccessKeyId']},SignedHeaders={listed},Signature={signature}"
    return {**headers, "authorization": f"{ALGORITHM} {said}"}
