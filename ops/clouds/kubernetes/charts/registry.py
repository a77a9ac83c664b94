"""A chart in a registry: its manifest, by whose digest it is known, and the archive that the manifest names.

Sources: OCI distribution specification, "Pulling manifests" and "Pulling blobs"; Helm, "Use OCI-based registries" (the
media types); Docker Registry, "Token Authentication Specification" (a token for everybody, where the registry wants
one).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ops.clouds.kubernetes.charts.https import Answer, FetchError, HttpStatusError, Web

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ARCHIVE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MOST_MANIFEST, MOST_TOKEN = 2**20, 2**17
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
UNAUTHORISED = 401


@dataclass(frozen=True)
class Pulled:
    """sha256: of the manifest. archive: the chart, which is what the manifest says."""

    sha256: str
    archive: bytes


def pull(web: Web, chart: str, version: str, most_bytes: int) -> Pulled:
    """chart: oci://HOST/NAME. Raises FetchError."""
    host, _, name = chart.removeprefix("oci://").partition("/")
    address = f"https://{host}/v2/{name}"
    web, manifest = _manifest(web.with_headers(Accept=MANIFEST), f"{address}/manifests/{version}")
    digest = hashlib.sha256(manifest.body).hexdigest()
    stated = manifest.headers.get("docker-content-digest", f"sha256:{digest}")
    if stated != f"sha256:{digest}":
        raise FetchError(f"the manifest of {chart} {version} has sha256 {digest}, and its registry states another")
    layer = _layer(manifest.body, f"{chart} {version}")
    archive = web.with_headers(Accept="*/*").get(f"{address}/blobs/sha256:{layer}", most_bytes).body
    if (arrived := hashlib.sha256(archive).hexdigest()) != layer:
        raise FetchError(f"the archive of {chart} {version} has sha256 {arrived}, and its manifest says {layer}")
    return Pulled(digest, archive)


def _manifest(web: Web, url: str) -> tuple[Web, Answer]:
    """The manifest, and the way that it was got by."""
    try:
        return web, web.get(url, MOST_MANIFEST)
    except HttpStatusError as refused:
        if refused.code != UNAUTHORISED:
            raise
        web = web.with_headers(Authorization=f"Bearer {_token(web, refused.challenge)}")
    return web, web.get(url, MOST_MANIFEST)


def _token(web: Web, challenge: str) -> str:
    """One that the registry gives to everybody: no login of this computer is used."""
    parameters = dict(CHALLENGE.findall(challenge))
    if not challenge.lower().startswith("bearer ") or "realm" not in parameters:
        raise FetchError("the registry wants a login, and names no place that gives a token to everybody")
    query = urlencode({key: parameters[key] for key in ("service", "scope") if key in parameters})
    answer = _json(web.get(f"{parameters['realm']}?{query}", MOST_TOKEN).body, "the registry's token")
    token = answer.get("token") or answer.get("access_token")
    if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
        raise FetchError("the registry has given no token")
    return token


def _layer(manifest: bytes, chart: str) -> str:
    layers = _json(manifest, f"the manifest of {chart}").get("layers")
    of_chart = (
        [each for each in layers if isinstance(each, dict) and each.get("mediaType") == ARCHIVE]
        if isinstance(layers, list)
        else []
    )
    digest = DIGEST.fullmatch(str(of_chart[0].get("digest"))) if len(of_chart) == 1 else None
    if digest is None:
        raise FetchError(f"the manifest of {chart} names no archive of a chart by its sha256")
    return digest[1]


def _json(text: bytes, what: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise FetchError(f"{what} cannot be read")
    return read
