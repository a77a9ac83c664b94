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
import urllib.error
import urllib.request
from itertools import groupby
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from grants import Grant, Place

CLOUD_SECONDS = 5.0  # for each answer
MOST_BYTES = 64 * 1024  # of an answer
MOST_POLICY = 2048  # characters, AssumeRole
TOKEN_SECONDS = 60
CREDENTIALS = "/latest/meta-data/iam/security-credentials/"
FORM = "application/x-www-form-urlencoded; charset=utf-8"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the metadata service is behind no proxy
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
    given = ElementTree.fromstring(fetched(settings["sts"], "POST", headers, body))
    values = {element.tag.rpartition("}")[2]: element.text or "" for element in given.iter()}
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    if missing := [name for name in names if not values.get(name)]:
        raise OSError(f"STS has answered without {', '.join(missing)}")
    return {"Version": 1, **{name: values[name] for name in names}}


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
    token = fetched(f"{metadata}/latest/api/token", "PUT", ttl, b"").decode()
    headers = {"X-aws-ec2-metadata-token": token}
    role = fetched(f"{metadata}{CREDENTIALS}", "GET", headers).decode().split()
    if not role:
        raise OSError("the node has no role")
    return json.loads(fetched(f"{metadata}{CREDENTIALS}{role[0]}", "GET", headers))


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


def fetched(url: str, method: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
    """Raises OSError, with the code of the error that AWS gives."""
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with OPENER.open(request, timeout=CLOUD_SECONDS) as answer:
            return answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            code = re.search(rb"<Code>(\w+)</Code>", error.read(MOST_BYTES))
        raise OSError(
            f"{urlsplit(url).netloc} answers {error.code} {code[1].decode() if code else ''}".strip()
        ) from None
