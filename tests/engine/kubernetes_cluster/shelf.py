"""Objects kept in a file in place of a cluster: for stacks whose cluster is a stand-in's, and has no API to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cloud_provider.store import Row, Store

from kubernetes_cluster.api import Object


class Shelf:
    """What `Api` does, without a server's opinion."""

    def __init__(self, file: Path) -> None:
        self.store = Store(file)

    def apply(self, body: Object, *, dry: bool = False, part: str = "") -> Object:
        if not dry:
            self.store.put([Row(type=f"{body['apiVersion']}/{body['kind']}", id=_id(body), inputs=dict(body))])
        return body

    def find(self, api: str, kind: str, name: str, namespace: str | None) -> Any:
        found = self.store.rows("type = ? and id = ?", f"{api}/{kind}", json.dumps([namespace, name]))
        return found[0].inputs if found else None

    def delete(self, api: str, kind: str, name: str, namespace: str | None) -> None:
        self.store.remove([Row(type=f"{api}/{kind}", id=json.dumps([namespace, name]))])


def _id(body: Object) -> str:
    return json.dumps([body["metadata"].get("namespace"), body["metadata"]["name"]])
