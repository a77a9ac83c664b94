"""A lock that cannot run is refused when the cluster is planned: no host is asked for anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from own_machines import TRAINER, Project, shipped
from test_wrong_tuples import WRONG  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra import catalog
from infra.catalog import drivers

OF_THE_GPU = [case for case in WRONG if "architecture" not in case[2]]  # a row of others is none for this GPU


@pytest.mark.parametrize(("gpu", "distribution", "changes", "reason"), OF_THE_GPU)
def test_a_wrong_tuple_is_refused_with_its_distribution_and_reason(
    machines: Project,
    monkeypatch: pytest.MonkeyPatch,
    gpu: str,
    distribution: str,
    changes: dict[str, Any],
    reason: str,
) -> None:
    cluster, lock = shipped(), drivers.load()
    cluster["nodes"][TRAINER]["gpu"] = gpu
    row = lock.of(catalog.load().gpu(gpu), distribution)
    wrong = replace(row, distributions=(distribution,), **changes)
    monkeypatch.setattr(drivers, "load", lambda: replace(lock, tuples=(wrong,)))

    findings = [finding for finding in machines.plan(cluster).errors if reason in finding.message]

    assert [(finding.rule, finding.path) for finding in findings] == [
        ("own-gpus-have-locked-drivers", "cluster.nodes[1].gpu")
    ]
    assert findings[0].message.startswith(f"{distribution}: ")
