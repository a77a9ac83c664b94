"""`gpufleet catalog charts` for charts of a registry, which are known by the digest of their manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chart_server import Site, chart_archive, served  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra.clouds.kubernetes.plan import charts as known
from infra.plan.chart import ChartPlan
from ops.clouds.kubernetes.charts import lock as command
from ops.clouds.kubernetes.charts.https import FetchError, Web

CHART = chart_archive("keda", "2.20.2")
DIGEST = hashlib.sha256(CHART).hexdigest()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "here").mkdir()
    with served(tmp_path / "here") as site:
        yield site


@pytest.fixture
def web(site: Site) -> Web:
    return Web(site.trust)


def in_registry(site: Site, *, layer: str = "", given: bytes = CHART, **headers: str) -> bytes:
    digest = layer or f"sha256:{hashlib.sha256(CHART).hexdigest()}"
    layers = [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": digest}]
    manifest = json.dumps({"schemaVersion": 2, "layers": layers}).encode()
    challenge = f'Bearer realm="{site.url}/token",service="r",scope="repository:charts/keda:pull"'
    site.puts("/v2/charts/keda/manifests/2.20.2", manifest, status=401, **{"WWW_Authenticate": challenge, **headers})
    site.puts(f"/v2/charts/keda/blobs/sha256:{DIGEST}", given)
    site.puts("/token", b'{"token": "everybodys"}')
    return manifest


def of_registry(site: Site) -> ChartPlan:
    return replace(known.KEDA, chart=f"oci://127.0.0.1:{site.port}/charts/keda", repository="", sha256="", archive="")


def test_a_chart_of_a_registry_is_known_by_its_manifest(site: Site, web: Web) -> None:
    manifest = in_registry(site)

    proven = command.prove(of_registry(site), web)

    assert (proven.sha256, proven.url) == (hashlib.sha256(manifest).hexdigest(), "")
    assert site.seen["/v2/charts/keda/manifests/2.20.2"]["authorization"] == "Bearer everybodys"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"given": b"other"}, "and its manifest says"),
        ({"layer": "sha256:zz"}, "names no archive of a chart"),
        ({"Docker_Content_Digest": f"sha256:{'3' * 64}"}, "and its registry states another"),
    ],
)
def test_a_registry_that_contradicts_itself_is_refused(
    site: Site, web: Web, changes: dict[str, Any], words: str
) -> None:
    in_registry(site, **changes)

    with pytest.raises(FetchError, match=words):
        command.prove(of_registry(site), web)


def test_a_registrys_token_stays_with_the_registry(site: Site, web: Web, tmp_path: Path) -> None:
    in_registry(site)
    with served(tmp_path) as elsewhere:
        elsewhere.puts("/blob", CHART)
        site.puts(f"/v2/charts/keda/blobs/sha256:{DIGEST}", b"", status=307, Location=f"{elsewhere.url}/blob")
        web.trust.load_verify_locations(tmp_path / "certificate.pem")  # pyright: ignore[reportOptionalMemberAccess]

        command.prove(of_registry(site), web)

        assert "authorization" not in elsewhere.seen["/blob"]


def test_a_token_is_never_fetched_over_plain_http(site: Site, web: Web) -> None:
    in_registry(site, WWW_Authenticate=f'Bearer realm="http://127.0.0.1:{site.plain_port}/token"')

    with pytest.raises(FetchError, match="only https:// is"):
        command.prove(of_registry(site), web)
