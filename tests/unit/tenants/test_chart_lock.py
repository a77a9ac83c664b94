"""Charts are known by digest where their publishers tell it, and what differs from it is not installed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from infra.clouds.kubernetes.plan import charts as known
from infra.clouds.kubernetes.plan.chart_lock import locked, rows
from infra.clouds.kubernetes.plan.model import ChartPlan, KubernetesPlan
from infra.evaluate import decide
from infra.plan.summary import command_line
from infra.spec import load
from ops.engine import charts

REPOSITORY = Path(__file__).resolve().parents[3]
ARCHIVE = b"a chart"
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a repository with one archive."""
    folder = tmp_path_factory.mktemp("charts")
    (folder / "a-1.tgz").write_bytes(ARCHIVE)
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing of what went well."""


@pytest.fixture
def plan() -> KubernetesPlan:
    decided = decide(load(REPOSITORY, "k8s-a100"))
    assert isinstance(decided, KubernetesPlan)
    return decided


def installing(plan: KubernetesPlan, **changed: str) -> KubernetesPlan:
    """The plan with one chart."""
    chart = replace(known.KEDA, **{"sha256": "", "archive": "", **changed})
    return replace(plan, tenant=replace(plan.tenant, charts=(chart,)))


def test_the_lock_has_a_row_of_the_version_of_every_chart() -> None:
    every = [each for each in vars(known).values() if isinstance(each, ChartPlan)]
    every.append(known.gpu_operator(known.Components(driver="image", device_plugin="operator"), mixed=False))

    assert {(chart.name, chart.version) for chart in every} == set(rows())


def test_a_digest_in_the_lock_is_whole_and_its_archive_is_fetched_over_tls() -> None:
    for row in rows().values():
        assert row["sha256"] == "" or len(bytes.fromhex(row["sha256"])) == 32
        assert row["archive"] == "" or row["archive"].startswith("https://")


def test_a_chart_of_another_version_than_the_locked_one_has_no_digest() -> None:
    assert locked(known.KEDA).sha256
    assert not locked(replace(known.KEDA, version="2.20.3")).sha256


def test_a_chart_of_a_registry_is_fetched_by_its_digest() -> None:
    assert replace(known.KUEUE, sha256=DIGEST).reference == f"{known.KUEUE.chart}@sha256:{DIGEST}"
    assert known.KUEUE.reference == known.KUEUE.chart
    assert locked(known.KEDA).reference == "keda"


def test_the_commands_for_review_show_a_digest_wherever_it_is_checked(plan: KubernetesPlan) -> None:
    kueue = replace(known.KUEUE, sha256=DIGEST)
    tenant = replace(plan.tenant, charts=(locked(known.KEDA), kueue, known.TRAINER))
    keda, registry, unknown = map(command_line, tenant.commands)

    assert keda.startswith(f"up, chart keda of sha256 {locked(known.KEDA).sha256}: helm install keda keda --version ")
    assert f" {kueue.chart}@sha256:{DIGEST} --version " in registry
    assert "sha256" not in unknown


def test_the_locked_archive_is_installed(plan: KubernetesPlan, repository: str) -> None:
    assert list(charts.differing(installing(plan, sha256=DIGEST, archive=f"{repository}/a-1.tgz"))) == []


def test_another_archive_than_the_locked_one_is_not_installed(plan: KubernetesPlan, repository: str) -> None:
    (finding,) = charts.differing(installing(plan, sha256="0" * 64, archive=f"{repository}/a-1.tgz"))

    assert finding.level == "error"
    assert f"a-1.tgz has sha256 {DIGEST}, but {'0' * 64} is locked: not installed" in finding.message


def test_an_archive_that_cannot_be_had_is_not_installed(plan: KubernetesPlan, repository: str) -> None:
    (finding,) = charts.differing(installing(plan, sha256=DIGEST, archive=f"{repository}/b-1.tgz"))

    assert (finding.level, "b-1.tgz cannot be fetched: HTTP Error 404" in finding.message) == ("error", True)


def test_an_archive_without_an_end_is_not_read_to_its_end(
    plan: KubernetesPlan, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "MOST_BYTES", 3)

    (finding,) = charts.differing(installing(plan, sha256=DIGEST, archive=f"{repository}/a-1.tgz"))

    assert "is larger than 3 bytes" in finding.message


def test_nothing_is_fetched_for_a_chart_without_a_digest(plan: KubernetesPlan) -> None:
    assert list(charts.differing(installing(plan, archive="http://127.0.0.1:1/a.tgz"))) == []
