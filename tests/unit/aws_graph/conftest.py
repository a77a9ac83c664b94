"""One rendering of each cluster for all tests: a graph is data, and nobody changes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from graph_clusters import CLUSTERS
from rendered import REPOSITORY, planned, render

from infra.graph import Graph


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(REPOSITORY / "Pulumi.yaml", folder)
    return folder


@pytest.fixture(scope="session")
def graph_of(root: Path) -> Callable[[str], Graph]:
    @cache
    def of(name: str) -> Graph:
        return render(planned(root, CLUSTERS[name], name), root)

    return of
