"""Sessions at AWS: the stack's storage role, taken on with the node's role and narrowed to the places of a grant.

Settings: {"role","region","node","metadata","sts"}: the role's ARN, the region, the node's name, and the addresses of
the metadata service and of STS. Sources: IAM User Guide, "Create a signed AWS API request" and "Session policies" (a
session may do what its role and its session policy both allow); STS API Reference, AssumeRole; EC2 User Guide, "Use the
Instance Metadata Service to access instance metadata"; Service Authorization Reference, "Actions, resources, and
condition keys for Amazon S3".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from itertools import groupby
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import web
from grants import Grant, Place

MOST_POLICY = 2048  # characters, AssumeRole
TOKEN_SECONDS = 60
SERVICE = "the metadata service"
CREDENTIALS = "/latest/meta-data/iam/security-credentials/"
FORM = "application/x-www-form-urlencoded; charset=utf-8"
CHANGE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


def session(settings: dict, grant: Grant, seconds: int) -> dict:
    """Raises OSError where AWS does not answer or refuses, and ValueError for a grant that is too long."""
    form = {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": settings["role"],
        "RoleSessionName": session_name(grant.login, settings["node"]),
        "DurationSeconds": str(seconds),
        "Policy": policy(grant, settings["role"].split(":")[1]),
    }
    body = urlencode(form).encode()
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = signed(settings["sts"], settings["region"], body, role_credentials(settings["metadata"]), moment)
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    return {"Version": 1, **web.texts(elements(web.fetch(settings["sts"], "POST", headers, body)), names, "STS")}


def elements(xml: bytes) -> dict[str, str]:
    """The texts of a document by their elements' names. Raises OSError."""
    try:
        if b"<!DOCTYPE" in xml:  # STS sends none, and entities could grow without end
            raise ElementTree.ParseError
        document = ElementTree.fromstring(xml)
    except (ElementTree.ParseError, ValueError, LookupError):  # the last two: of an encoding that it names
        raise OSError("STS has answered what is no XML") from None
    return {element.tag.rpartition("}")[2]: element.text or "" for element in document.iter()}


def session_name(login: str, node: str) -> str:
    """What CloudTrail shows: 2 to 64 of letters, digits and =,.@-_ (STS API Reference)."""
    return re.sub(r"[^A-Za-z0-9=,.@_-]", "-", f"{login}@{node}")[:64]


def policy(grant: Grant, partition: str) -> str:
    """The session policy. What reaches the key is left to the role, which says which key and by what way."""

    def objects(places: list[Place]) -> list[str]:
        return [f"arn:{partition}:s3:::{place.bucket}/{place.prefix}*" for place in places]

    def buckets(places: list[Place]) -> list[str]:
        return list(dict.fromkeys(f"arn:{partition}:s3:::{place.bucket}" for place in places))

    places = sorted(grant.places, key=lambda place: place.prefix)
    writable = [place for place in places if place.mode != "read"]
    uploaded = [place for place in places if place.mode == "upload"]
    statements = [
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": buckets(list(same)),
            "Condition": {"StringLike": {"s3:prefix": f"{prefix}*"}},
        }
        for prefix, same in groupby(places, key=lambda place: place.prefix)
    ]
    statements += [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": objects(places)},
        {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": "*"},
    ]
    if writable:
        statements.append({"Effect": "Allow", "Action": list(CHANGE), "Resource": objects(writable)})
    if uploaded:
        uploads = {"Effect": "Allow", "Action": "s3:ListBucketMultipartUploads", "Resource": buckets(uploaded)}
        statements.append(uploads)
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(text) > MOST_POLICY:
        raise ValueError(
            f"{len(places)} places make a session policy of {len(text)} characters; AWS takes {MOST_POLICY}"
        )
    return text


def role_credentials(metadata: str) -> dict:
    """Those of the node's role, by IMDSv2. Raises OSError."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_SECONDS)}
    headers = {
        "X-aws-ec2-metadata-token": web.word(web.fetch(f"{metadata}/latest/api/token", "PUT", ttl, b""), SERVICE)
    }
    roles = web.fetch(f"{metadata}{CREDENTIALS}", "GET", headers).split()
    if not roles:
        raise OSError("the node has no role")
    answer = web.fetch(f"{metadata}{CREDENTIALS}{web.word(roles[0], SERVICE)}", "GET", headers)
    return web.texts(web.json_object(answer, SERVICE), ("AccessKeyId", "SecretAccessKey", "Token"), SERVICE)


def signed(url: str, region: str, body: bytes, credentials: dict, moment: str) -> dict[str, str]:
    """The headers of a POST to STS, with its signature (Signature Version 4)."""
    scope = f"{moment[:8]}/{region}/sts/aws4_request"
    headers = {
        "content-type": FORM,
        "host": urlsplit(url).netloc,
        "x-amz-date": moment,
        "x-amz-security-token": credentials["Token"],
    }
    listed = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(["POST", "/", "", lines, listed, hashlib.sha256(body).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{credentials['SecretAccessKey']}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"{credentials['AccessKeyId']}/{scope}"
    authorization = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={listed}, Signature={signature}"
    return {**headers, "authorization": authorization}
