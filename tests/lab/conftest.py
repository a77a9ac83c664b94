"""The hosts and machines that tests of this folder share or boot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import ssh_hosts
from gpu_machines import Boot, GpuMachine, Hardware, fleet, lacking


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ssh_hosts.Site]:
    """Two nodes that are processes."""
    with ssh_hosts.running(tmp_path_factory.mktemp("s"), nodes=2) as site:
        yield site


@pytest.fixture(scope="session")
def boot(tmp_path_factory: pytest.TempPathFactory) -> Boot:
    """Boots machines of such hardware; skips the test where this computer cannot."""

    @contextmanager
    def booted(*hardware: Hardware) -> Iterator[tuple[GpuMachine, ...]]:
        folder = tmp_path_factory.mktemp("m")
        if reason := lacking(folder, len(hardware)):
            pytest.skip(reason)
        with fleet(folder, *hardware) as machines:
            yield machines

    return booted
