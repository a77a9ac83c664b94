"""`gpufleet catalog charts`: the lock of charts held against what their repositories state and give out."""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.clouds.kubernetes.plan.chart_lock import LOCK, rows
from infra.clouds.kubernetes.plan.charts import every
from infra.plan.chart import ChartPlan
from infra.printable import one_line
from ops.clouds.kubernetes.charts import archive, images, registry
from ops.clouds.kubernetes.charts.https import FetchError, Web
from ops.clouds.kubernetes.charts.index import ChartIndexError, entry
from ops.console.phases import Phases
from ops.errors import CommandError

Document = dict[str, Any]

MOST_INDEX, MOST_ARCHIVE = 64 * 2**20, 16 * 2**20
COLUMNS = ("chart", "version", "sha256", "archive")
WORDS = {"locked": "as locked", "new": "new", "refused": "refused"}


@dataclass(frozen=True)
class Proven:
    """A chart as it was given out. url: of its archive, empty for a registry, where the digest is the name."""

    sha256: str
    url: str
    archive: bytes


def charts(phases: Phases, *, write: bool, web: Web | None = None, lock: Path = LOCK) -> Document:
    """Fetches every chart of the lock in its version, and proves it. write: puts the new digests into the lock, which
    happens only where no chart was refused. Raises CommandError where a chart was: one line a chart."""
    web, known = web or Web(), rows(lock)
    results: list[Document] = []
    for chart in every():
        with phases.phase(chart.name) as phase:
            row = known.get((chart.name, chart.version), {})
            results.append(_held(chart, row.get("sha256", ""), web))
            phase.say(results[-1]["problem"] or f"{results[-1]['sha256']} · {WORDS[results[-1]['state']]}")
    document = {"charts": results, "written": False}
    if refused := [result for result in results if result["state"] == "refused"]:
        lines = [f"{result['chart']} {result['version']}: {result['problem']}" for result in refused]
        raise CommandError(*lines, "nothing was written")
    if write and any(result["state"] == "new" for result in results):
        _write(lock, results)
        document["written"] = True
    return document


def prove(chart: ChartPlan, web: Web) -> Proven:
    """Raises FetchError and ChartIndexError."""
    if chart.chart.startswith("oci://"):
        pulled = registry.pull(web, chart.chart, chart.version, MOST_ARCHIVE)
        proven, name = Proven(pulled.sha256, "", pulled.archive), chart.chart.rpartition("/")[2]
    else:
        index = web.get(f"{chart.repository.rstrip('/')}/index.yaml", MOST_INDEX).body
        stated = entry(index, chart.repository, chart.chart, chart.version)
        given = web.get(stated.url, MOST_ARCHIVE).body
        if (digest := hashlib.sha256(given).hexdigest()) != stated.sha256:
            raise FetchError(f"{stated.url} has sha256 {digest}, and the repository's index states {stated.sha256}")
        proven, name = Proven(stated.sha256, stated.url, given), chart.chart
    if problem := archive.problem(proven.archive, name, chart.version):
        raise FetchError(problem)
    return proven


def _held(chart: ChartPlan, locked: str, web: Web) -> Document:
    result: Document = {"chart": chart.name, "version": chart.version, "sha256": "", "archive": "", "images": None}
    try:
        proven = prove(chart, web)
    except (FetchError, ChartIndexError) as error:
        return {**result, "state": "refused", "problem": one_line(str(error))}
    result |= {"sha256": proven.sha256, "archive": proven.url}
    if locked and locked != proven.sha256:
        problem = f"its repository gives out {proven.sha256} now, and the lock says {locked}"
        return {**result, "state": "refused", "problem": problem}
    listed = images.named(proven.archive, chart.name, chart.values)
    return {**result, "images": listed, "state": "locked" if locked else "new", "problem": ""}


def _write(lock: Path, results: list[Document]) -> None:
    """As a whole or not at all; rows of other versions stay."""
    fresh = {(result["chart"], result["version"]): {key: result[key] for key in COLUMNS} for result in results}
    aside = lock.with_suffix(".new")
    with aside.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows({**rows(lock), **fresh}.values())
        file.flush()
        os.fsync(file.fileno())
    aside.replace(lock)
    rows.cache_clear()


def text(document: Document) -> str:
    """The digests, and by chart the images that it names by tag alone."""
    lines = [
        f"{result['chart']:<28} {result['version']:<10} {result['sha256']}  {WORDS[result['state']]}"
        for result in document["charts"]
    ]
    for result in document["charts"]:
        if result["images"] is None:
            lines.append(f"{result['chart']}: its images are not listed; `helm` on PATH would render it")
        lines += [f"{result['chart']}: image {image}" for image in result["images"] or ()]
    new = sum(result["state"] == "new" for result in document["charts"])
    if document["written"]:
        return "\n".join([*lines, f"{new} written"])
    return "\n".join([*lines, f"{new} new; --write puts them into the table" if new else "the table is whole"])
