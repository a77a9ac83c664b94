"""What keeps this computer from being a site is told in one line with its remedy, before anything is made."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.clouds.local.nodes import machine, process, wire
from infra.clouds.local.nodes.errors import LocalError, one_line_errors
from infra.clouds.local.provider import SiteProvider


def refusals(place: Path, isolation: str = "process", nodes: int = 2, cidr: str = "10.213.0.0/24") -> list[str]:
    props: dict[str, Any] = {"path": str(place / "site"), "isolation": isolation, "nodes": nodes, "network": cidr}
    return [failure.reason for failure in SiteProvider().check({}, props).failures]


def test_without_an_ssh_server_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SSHD", tmp_path / "sshd")

    assert refusals(tmp_path) == [f"there is no SSH server at {tmp_path}/sshd: install the package openssh-server"]


def test_a_full_disk_is_told_before_the_first_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))

    assert refusals(tmp_path) == [f"the disk of {tmp_path} is full: free some space"]


def test_a_disk_that_fills_up_later_is_one_line_too() -> None:
    with pytest.raises(LocalError) as caught, one_line_errors("cannot make node-1"):
        raise OSError(errno.ENOSPC, "No space left on device", "/x")

    assert str(caught.value) == "cannot make node-1: No space left on device: /x; free some space and run it again"


def test_machines_without_root_are_refused_with_the_other_isolation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    assert "use `isolation: process`" in refusals(tmp_path, "machine")[0]


def test_more_machines_than_this_computer_can_watch_are_refused_with_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(machine, "TOOLS", {})
    limit = tmp_path / "max_user_instances"
    limit.write_text("128")
    monkeypatch.setattr(machine, "INOTIFY", limit)

    assert "`sysctl -w fs.inotify.max_user_instances=" in refusals(tmp_path, "machine", nodes=32)[0]


@pytest.mark.skipif(not shutil.which("ip"), reason="not installed: ip")
def test_a_network_that_is_somebody_elses_is_refused(tmp_path: Path) -> None:
    assert "127.0.0.0/8" in wire.problems(tmp_path, "127.0.0.0/24")[0]


def test_a_site_that_can_be_made_is_not_refused(tmp_path: Path) -> None:
    if process.problems():
        pytest.skip("; ".join(process.problems()))

    assert refusals(tmp_path) == []
