"""gpu_node.yml on a machine without GPUs: logged in as a person, configured as root. With GPUs: test_gpu_stack."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_hosts import Site, make_package

from infra.clouds.local import base, machine, sweep
from infra.clouds.local.site import MACHINE_USER, NodeSpec
from infra.handover import Handover
from ops import nodes

pytestmark = pytest.mark.drill

ADDRESS, GATEWAY, CIDR = "10.213.51.11", "10.213.51.1", "10.213.51.0/24"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("m")
    if lacking := machine.problems(folder, 1):
        pytest.skip(lacking[0])
    environment = Path(sys.executable).parents[1]
    ground = {"cidr": CIDR, "gateway": GATEWAY, "base": base.name(), "environment": str(environment)}
    spec = NodeSpec(
        site=folder, name="box-1", address=ADDRESS, port=22, public_keys=(), storage={"data": "/data"}, machine=ground
    )
    try:
        machine.create(spec)
        node = {
            "name": "box-1",
            "group": "box",
            "address": ADDRESS,
            "port": 22,
            "host_key": spec.host_key,
            "prefix": "/",
        }
        access = {
            "user": MACHINE_USER,
            "key_file": str(folder / "key"),
            "known_hosts_file": str(folder / "known_hosts"),
        }
        handover = {
            "version": 1,
            "stack": "boxes",
            "cloud": "local",
            "region": None,
            "access": access,
            "nodes": [node],
            "groups": [{"name": "box", "count": 1, "gpu": None, "gpus_per_node": 0, "fabric": "none"}],
            "storage": [{"name": "data", "path": "/data"}],
            "store": {"host": "control", "address": GATEWAY},
            "environment": {"python": sys.executable, "shared": True},
        }
        yield Site(folder, (), handover, make_package(folder / "training"))
    finally:
        sweep.remove(folder)


def said(site: Site, line: str) -> str:
    told = Handover.model_validate(site.handover)
    answer = nodes.run(told, told.nodes[0], line)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_a_machine_gets_its_files_in_the_system_and_its_parameters_in_the_kernel(site: Site) -> None:
    first = site.play("gpu_node.yml")

    assert first.code == 0, first.output
    assert said(site, "cat /etc/sysctl.d/90-gpufleet.conf /proc/sys/net/ipv4/tcp_mtu_probing").endswith("= 1\n1")
    assert said(site, "stat -c %U /etc/gpufleet/node.json /var/lib/gpufleet") == f"root\n{MACHINE_USER}"
    assert (
        said(site, "cd /opt/gpufleet/current && python3 -c 'import training; print(training.__doc__)'") == "A package."
    )
    assert nodes.states(Handover.model_validate(site.handover))[0].state == "ready"

    second = site.play("gpu_node.yml")

    assert (second.code, second.changed) == (0, 0), second.output
