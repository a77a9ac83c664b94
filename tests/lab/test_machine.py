"""gpu_node.yml on a machine without GPUs: refused, configured as root, with an environment that it makes by itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import apt_repository
import lone_machine
import pytest
from ssh_hosts import Site, make_lock

from infra.handover import Handover
from ops.nodes import ssh

pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with lone_machine.running(tmp_path_factory.mktemp("m")) as site:
        yield site


def said(site: Site, line: str) -> str:
    told = Handover.model_validate(site.handover)
    answer = ssh.run(told, told.nodes[0], line)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def system(site: Site) -> Path:
    """The machine's own root folder."""
    return site.folder / "nodes" / lone_machine.NAME / "disk/root"


def test_a_distribution_that_no_role_knows_is_refused_in_one_line_and_left_alone(site: Site) -> None:
    release, mark = system(site) / "usr/lib/os-release", system(site) / "etc/redhat-release"
    debian = release.read_text()
    release.write_text('NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="8.10"\n')
    mark.write_text("Rocky Linux release 8.10 (Green Obsidian)\n")

    refused = site.play("gpu_node.yml")
    release.write_text(debian)
    mark.unlink()

    assert (refused.code, refused.changed) == (2, 0), refused.output
    assert (
        "system: Rocky 8 is none of Debian 12, Debian 13, Ubuntu 22, Ubuntu 24, RedHat 9, Rocky 9, AlmaLinux 9: choose"
        in refused.output
    )


def test_a_machine_gets_its_files_in_the_system_and_its_parameters_in_the_kernel(site: Site) -> None:
    first = site.play("gpu_node.yml")

    assert first.code == 0, first.output
    assert said(site, "cat /etc/sysctl.d/90-gpufleet.conf /proc/sys/net/ipv4/tcp_mtu_probing").endswith("= 1\n1")
    owners = said(site, "stat -c %U /etc/gpufleet/node.json /var/lib/gpufleet /var/lib/gpufleet/runs")
    assert owners.split() == ["root", "root", "gpufleet-job"]
    assert (
        said(site, "cd /opt/gpufleet/current && python3 -c 'import training; print(training.__doc__)'") == "A package."
    )
    assert ssh.states(Handover.model_validate(site.handover))[0].state == "ready"

    second = site.play("gpu_node.yml")

    assert (second.code, second.changed) == (0, 0), second.output


def test_a_bare_image_gets_what_makes_environments_and_then_its_own(site: Site, tmp_path: Path) -> None:
    root = system(site)
    apt_repository.on_disk(root, "python3-venv", "python3-packaging")
    lock = make_lock(tmp_path, "torch")
    lock.write_text(lock.read_text().replace(tmp_path.as_uri(), "file:///srv/wheels"))
    shutil.copytree(tmp_path, root / "srv/wheels")
    python = "/opt/gpufleet/venv/bin/python"
    settings = {
        "handover": {**site.handover, "environment": {"python": python, "shared": False}},
        "python_environment_lock": str(lock),
        "preflight_disk_gib": 0.1,
    }

    first, second = (site.play("gpu_node.yml", **settings) for _ in range(2))

    assert first.code == 0, first.output
    assert (second.code, second.changed) == (0, 0), second.output
    assert said(site, f"{python} -c 'import torch; print(torch.__name__)'") == "torch"
