"""Two nodes for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ssh_hosts


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ssh_hosts.Site]:
    with ssh_hosts.running(tmp_path_factory.mktemp("s"), nodes=2) as site:
        yield site
