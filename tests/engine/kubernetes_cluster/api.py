"""The API server, object by object: server-side apply with strict fields, and its own words when it refuses."""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MANAGER, APPLY = "gpufleet-tests", "application/apply-patch+yaml"
GONE_SECONDS = 300.0
Object = Mapping[str, Any]


class RefusedError(Exception):
    """What the API server said, in one line. status: of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Api:
    """One cluster, as one user. trusting: the server's certificate is one that it has made for itself, on loopback."""

    url: str
    token: str
    trusting: ssl.SSLContext

    @classmethod
    def of(cls, kubeconfig: Path | str) -> Api:
        """kubeconfig: of the form that `control_plane.running` writes."""
        read = yaml.safe_load(Path(kubeconfig).read_text())
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        return cls(read["clusters"][0]["cluster"]["server"], read["users"][0]["user"]["token"], trusting)

    def ready(self) -> bool:
        """Whether all of the server has come up."""
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.token}"})
        try:
            urllib.request.urlopen(request, timeout=5, context=self.trusting).close()
        except OSError:
            return False
        return True

    def apply(self, body: Object, *, dry: bool = False, part: str = "") -> Any:
        """Makes or changes an object, and returns it as it then is. part: of it, such as its status."""
        path = self.path(body["apiVersion"], body["kind"], body["metadata"]["name"], body["metadata"].get("namespace"))
        query = {
            "fieldManager": MANAGER,
            "fieldValidation": "Strict",
            "force": "true",
            **({"dryRun": "All"} if dry else {}),
        }
        return self.call("PATCH", f"{path}/{part}" if part else path, body, query)

    def define(self, text: bytes) -> None:
        """Makes custom resources known, from the YAML of their definition (megabytes: not parsed here)."""
        name = re.search(rb"^  name: (\S+)$", text, flags=re.MULTILINE)
        assert name is not None
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name[1].decode()}"
        self.send("PATCH", f"{path}?fieldManager={MANAGER}&force=true", text)

    def find(self, api: str, kind: str, name: str, namespace: str | None) -> Any:
        """None where there is none."""
        try:
            return self.call("GET", self.path(api, kind, name, namespace))
        except RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def delete(self, api: str, kind: str, name: str, namespace: str | None) -> None:
        """Returns when it is gone."""
        path = self.path(api, kind, name, namespace)
        limit = time.monotonic() + GONE_SECONDS
        if self.find(api, kind, name, namespace) is None:
            return
        self.call("DELETE", path, {"propagationPolicy": "Background"})
        while self.find(api, kind, name, namespace) is not None and kind != "Namespace":
            if time.monotonic() > limit:
                raise RefusedError(504, f"{kind} {name} does not go")
            time.sleep(0.05)

    def path(self, api: str, kind: str, name: str, namespace: str | None) -> str:
        """Where an object is served. Raises RefusedError for a kind that the server does not know."""
        root = f"/api/{api}" if "/" not in api else f"/apis/{api}"
        try:
            served = self.call("GET", root)["resources"]
        except RefusedError as refused:
            if refused.status != 404:
                raise
            served = []
        found = next((each for each in served if each["kind"] == kind and "/" not in each["name"]), None)
        if found is None:
            raise RefusedError(404, f'no matches for kind "{kind}" in version "{api}"')
        if found["namespaced"] and not namespace:
            raise RefusedError(400, f"{kind} {name} needs a namespace")
        return (
            f"{root}/namespaces/{namespace}/{found['name']}/{name}" if namespace else f"{root}/{found['name']}/{name}"
        )

    def call(self, method: str, path: str, body: Object | None = None, query: Mapping[str, str] | None = None) -> Any:
        text = None if body is None else json.dumps(body).encode()
        return self.send(method, f"{path}?{urllib.parse.urlencode(query or {})}", text)

    def send(self, method: str, path: str, text: bytes | None) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", data=text, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        if text is not None:
            request.add_header("Content-Type", APPLY if method == "PATCH" else "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.trusting) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RefusedError(error.code, _said(error)) from None


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return " ".join(json.load(error)["message"].split())
    except (ValueError, KeyError):
        return error.reason
