"""A machine that cannot be the GPU node of its stack is told every reason, before a package of it is touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

pytestmark = pytest.mark.drill

T4 = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(T4) as (found,):
        yield found


def test_a_machine_that_cannot_be_this_node_is_told_why_and_left_alone(node: GpuMachine) -> None:
    node.run(f'mount -o remount,rw /sys; mkdir -p $(dirname {SECURE_BOOT}); printf "\\001" > {SECURE_BOOT}')
    (group,) = node.site.handover["groups"]
    elsewhere = {**group, "gpus_per_node": 2, "drivers": {"ubuntu2404": group["drivers"]["ubuntu2404"]}}
    handover = {**node.site.handover, "groups": [elsewhere]}
    before = node.run("dpkg-query -W; apt-mark showhold; ls /etc/apt/*")

    refused = node.play(handover=handover, gpu_facts_processor="aarch64")

    assert refused.code != 0
    assert "no locked driver for T4 on debian12: choose an image with one of ubuntu2404" in refused.output
    assert "processor: aarch64, and no driver is locked beside one" in refused.output
    assert "GPUs: 1 on the PCI bus, the stack asks 2" in refused.output
    assert "secure boot: it is on, and refuses a module that is built on the node" in refused.output
    assert node.run("dpkg-query -W; apt-mark showhold; ls /etc/apt/*") == before


def test_a_firewall_of_the_distribution_is_named_unless_it_is_said_to_let_peers_through(node: GpuMachine) -> None:
    unit = "/etc/systemd/system/firewalld.service"
    node.run(f'printf "[Service]\\nExecStart=/bin/sleep infinity\\n" > {unit}; systemctl start firewalld')
    node.run("mkdir /etc/ufw; echo ENABLED=yes > /etc/ufw/ufw.conf")

    refused = node.play("gpu_node.yml", "--check")
    let = node.play("gpu_node.yml", "--check", preflight_firewalls=[])

    assert "firewall: firewalld, ufw at work, and jobs need all ports of the other nodes" in refused.output
    assert "firewall:" not in let.output
