"""`gpufleet catalog charts`: what is taken for a chart's digest is what its publisher states, proven on the archive."""

from __future__ import annotations

import csv
import gzip
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
from infra.printable import printable
from ops.clouds.kubernetes.charts import archive as archives
from ops.clouds.kubernetes.charts import lock as command
from ops.clouds.kubernetes.charts.https import FetchError, Web
from ops.clouds.kubernetes.charts.index import ChartIndexError, entry
from ops.console.phases import Phases
from ops.console.terminal import Screen
from ops.errors import CommandError

CHART = chart_archive("keda", "2.20.2")
DIGEST = hashlib.sha256(CHART).hexdigest()
LOCK = "chart,version,sha256,archive\nother,1,,\nkeda,2.20.2,{},\n"


@pytest.fixture(scope="module")
def web_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def site(web_site: Site) -> Site:
    """With the chart in its repository, and nothing else."""
    web_site.answers.clear()
    web_site.seen.clear()
    web_site.puts("/charts/index.yaml", index())
    web_site.puts("/charts/keda-2.20.2.tgz", CHART)
    return web_site


@pytest.fixture
def web(site: Site) -> Web:
    return Web(site.trust)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "charts.csv"
    path.write_text(LOCK.format(""))
    return path


def index(**changes: Any) -> bytes:
    said = {"name": "keda", "version": "2.20.2", "urls": ["keda-2.20.2.tgz"], "digest": DIGEST, **changes}
    older = {**said, "version": "2.20.1", "digest": "0" * 64}
    return json.dumps({"apiVersion": "v1", "entries": {"other": [older], "keda": [older, said]}}).encode()


def keda(site: Site, **changes: str) -> ChartPlan:
    return replace(known.KEDA, **{"repository": f"{site.url}/charts", "sha256": "", "archive": "", **changes})


def run(
    monkeypatch: pytest.MonkeyPatch, web: Web, lock: Path, *charts: ChartPlan, write: bool = False
) -> dict[str, Any]:
    monkeypatch.setattr(command, "every", lambda: charts)
    monkeypatch.setenv("PATH", str(lock.parent))
    return command.charts(Phases(Screen(), quiet=True), write=write, web=web, lock=lock)


def test_a_digest_that_is_missing_is_shown_and_not_written(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path
) -> None:
    before = lock.read_text()

    told = run(monkeypatch, web, lock, keda(site))

    assert (told["charts"][0]["state"], told["charts"][0]["sha256"]) == ("new", DIGEST)
    assert "1 new; --write puts them into the table" in command.text(told)
    assert lock.read_text() == before


def test_with_write_the_table_has_it_and_keeps_its_other_rows(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path
) -> None:
    run(monkeypatch, web, lock, keda(site), write=True)

    with lock.open() as file:
        other, ours = csv.DictReader(file)
    assert other == {"chart": "other", "version": "1", "sha256": "", "archive": ""}
    assert ours["sha256"] == DIGEST
    assert ours["archive"] == f"{site.url}/charts/keda-2.20.2.tgz"
    assert run(monkeypatch, web, lock, keda(site))["charts"][0]["state"] == "locked"


def test_another_digest_than_the_locked_one_is_an_error_and_never_written(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path
) -> None:
    lock.write_text(before := LOCK.format("1" * 64))

    with pytest.raises(CommandError, match=f"gives out {DIGEST} now, and the lock says {'1' * 64}"):
        run(monkeypatch, web, lock, keda(site), write=True)

    assert lock.read_text() == before


def test_one_refused_chart_writes_nothing_and_is_one_line(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path
) -> None:
    lost = keda(site, name="lost", repository=f"{site.url}/lost")

    with pytest.raises(CommandError) as caught:
        run(monkeypatch, web, lock, keda(site), lost, write=True)

    refused, nothing = str(caught.value).splitlines()
    assert refused == f"lost 2.20.2: {site.url}/lost/index.yaml cannot be fetched: the server answers 404"
    assert nothing == "nothing was written"
    assert DIGEST not in lock.read_text()


@pytest.mark.parametrize(
    ("path", "body", "headers", "words"),
    [
        ("/charts/index.yaml", index(digest="2" * 64), {}, f"has sha256 {DIGEST}, and the repository's index states"),
        ("/charts/index.yaml", index(digest=""), {}, "states no sha256"),
        ("/charts/index.yaml", index(digest="md5:1"), {}, "states no sha256"),
        ("/charts/index.yaml", index(version="2.20.3"), {}, "has no entries of keda 2.20.2"),
        ("/charts/index.yaml", index(version="2.20.1"), {}, "has no entries of keda 2.20.2"),
        ("/charts/index.yaml", index(urls=[]), {}, "names no archive"),
        ("/charts/index.yaml", index(urls=["http://127.0.0.1/a.tgz"]), {}, "only https:// is"),
        ("/charts/index.yaml", index(urls=["file:///etc/passwd"]), {}, "only https:// is"),
        ("/charts/index.yaml", b"entries: {keda: &a [*a]}", {}, "aliases"),
        ("/charts/index.yaml", b"entries: {keda: !!python/object:os.system [1]}", {}, "has no list|has no entries"),
        ("/charts/index.yaml", b"entries: {keda: !run [1]}", {}, "has the tag !run"),
        ("/charts/index.yaml", b"entries: {keda: []}\nentries: {keda: [{version: 2.20.2}]}", {}, "has keda twice"),
        ("/charts/index.yaml", b"entries: {keda: [{version: 2.20.2, version: 2.20.2}]}", {}, "twice in an entry"),
        ("/charts/index.yaml", b"entries: {keda: " + b"[" * 200 + b"]" * 200 + b"}", {}, "nested more than"),
        ("/charts/index.yaml", b"entries: {", {}, "cannot be read"),
        ("/charts/index.yaml", b"\xff\xfe", {}, "cannot be read"),
        ("/charts/index.yaml", b"", {}, "is empty"),
        ("/charts/keda-2.20.2.tgz", b"", {}, "has sha256"),
    ],
)
def test_what_is_not_whole_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path, path: str, body: bytes, headers: Any, words: str
) -> None:
    site.puts(path, body, **headers)

    with pytest.raises(CommandError, match=words) as caught:
        run(monkeypatch, web, lock, keda(site), write=True)

    assert len(str(caught.value).splitlines()) == 2
    assert printable(str(caught.value)) == str(caught.value)


@pytest.mark.parametrize("file", ["index.yaml", "keda-2.20.2.tgz"])
def test_a_redirect_to_plain_http_is_not_followed(site: Site, web: Web, file: str) -> None:
    site.puts("/plain", CHART)
    site.puts(f"/charts/{file}", b"", status=302, Location=f"http://127.0.0.1:{site.plain_port}/plain")

    with pytest.raises(FetchError, match=r"redirects, and http://.* is not fetched: only https:// is"):
        command.prove(keda(site), web)

    assert "/plain" not in site.seen


def test_a_redirect_over_https_is_followed_and_an_endless_one_is_not(site: Site, web: Web) -> None:
    site.puts("/elsewhere", CHART)
    site.puts("/charts/keda-2.20.2.tgz", b"", status=302, Location="/elsewhere")
    assert command.prove(keda(site), web).sha256 == DIGEST

    site.puts("/charts/keda-2.20.2.tgz", b"", status=302, Location="/charts/keda-2.20.2.tgz")
    with pytest.raises(FetchError, match="cannot be fetched"):
        command.prove(keda(site), web)


@pytest.mark.parametrize(("limit", "file"), [("MOST_ARCHIVE", "keda-2.20.2.tgz"), ("MOST_INDEX", "index.yaml")])
def test_what_is_larger_than_it_may_be_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, limit: str, file: str
) -> None:
    monkeypatch.setattr(command, limit, 100)

    with pytest.raises(FetchError, match=f"{file} is larger than 100 bytes"):
        command.prove(keda(site), web)


def test_a_server_that_nobody_vouches_for_is_not_believed(site: Site) -> None:
    with pytest.raises(FetchError, match="CERTIFICATE_VERIFY_FAILED"):
        command.prove(keda(site), Web())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (chart_archive("keda", "2.20.1"), "is another chart: 'keda' '2.20.1'"),
        (chart_archive("kedo", "2.20.2"), "has no keda/Chart.yaml"),
        (b"no archive", "cannot be read as a chart"),
        (CHART[:100], "cannot be read as a chart"),
        (gzip.compress(b"\0" * 2**20), "cannot be read as a chart|has no keda"),
    ],
)
def test_an_archive_that_is_another_chart_is_refused_whatever_the_index_states(
    site: Site, web: Web, given: bytes, words: str
) -> None:
    site.puts("/charts/index.yaml", index(digest=hashlib.sha256(given).hexdigest()))
    site.puts("/charts/keda-2.20.2.tgz", given)

    with pytest.raises(FetchError, match=words):
        command.prove(keda(site), web)


def test_an_archive_that_unpacks_to_more_than_a_chart_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_UNPACKED", 2**16)
    large = chart_archive("other", "1", padding=2**22)

    assert archives.problem(large, "keda", "2.20.2") == "the archive cannot be read as a chart"


def test_an_index_of_a_million_lines_is_read_without_keeping_it() -> None:
    others = b"".join(b"  other-%d:\n  - {version: 1.0.0, urls: [a], digest: x}\n" % i for i in range(20_000))
    text = b"entries:\n" + others + f"  keda:\n  - {{version: 2.20.2, urls: [a.tgz], digest: {DIGEST}}}\n".encode()

    assert entry(text, "https://a/b", "keda", "2.20.2").url == "https://a/b/a.tgz"


def test_a_version_that_is_there_twice_is_none() -> None:
    twice = {"version": "1", "urls": ["a"], "digest": DIGEST}

    with pytest.raises(ChartIndexError, match="has 2 entries"):
        entry(json.dumps({"entries": {"a": [twice, twice]}}).encode(), "https://a", "a", "1")


def test_images_are_listed_where_helm_renders_the_chart(
    monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path
) -> None:
    helm = lock.parent / "helm"
    helm.write_text(
        '#!/bin/sh\n[ "$1" = template ] || exit 1\n'
        'printf "spec:\\n  image: a/b:1\\n  - image: \\"c/d@sha256:00\\"\\n"\n'
    )
    helm.chmod(0o755)

    told = run(monkeypatch, web, lock, keda(site))

    assert told["charts"][0]["images"] == ["a/b:1", "c/d@sha256:00"]
    assert "keda: image a/b:1" in command.text(told)


def test_without_helm_it_says_so(monkeypatch: pytest.MonkeyPatch, site: Site, web: Web, lock: Path) -> None:
    told = run(monkeypatch, web, lock, keda(site))

    assert told["charts"][0]["images"] is None
    assert "`helm` on PATH would render it" in command.text(told)


def test_the_command_is_about_every_chart_of_the_table() -> None:
    with command.LOCK.open() as file:
        assert {(each.name, each.version) for each in known.every()} == {
            (row["chart"], row["version"]) for row in csv.DictReader(file)
        }
