"""Nodes without a port that is open to anybody: SSH through Session Manager, with a stand-in for the command `aws`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import ssh_hosts  # pyright: ignore[reportMissingImports]: conftest.py finds it
from aws_cloud import front
from aws_cloud.direct import Direct
from aws_cloud.kinds_ec2 import FLEET, INSTANCE, SUBNET, TEMPLATE, VPC
from aws_life import REPOSITORY

from infra import evaluate, spec
from infra.clouds.aws.plan.model import AwsPlan
from infra.handover import Access, Environment, Handover, Node, Store
from ops.clouds.aws import discovery
from ops.clouds.aws.account import Account
from ops.nodes import ssh

sys.path.append(str(REPOSITORY / "tests" / "lab"))

AWS = """#!/bin/sh
echo "$*" >>{calls}
[ "$1" = ssm ] || exit 0
exec {python} -c '
import os, socket, threading
way = socket.create_connection(("{address}", {port}))
def there():
    while sent := os.read(0, 65536):
        way.sendall(sent)
threading.Thread(target=there, daemon=True).start()
while back := way.recv(65536):
    os.write(1, back)
'
"""
CONSOLE = "-----BEGIN SSH HOST KEY KEYS-----\n{} root@node\n-----END SSH HOST KEY KEYS-----\n"


@pytest.fixture
def decided() -> AwsPlan:
    found = evaluate.decide(spec.load(REPOSITORY, "b300-lab"))
    assert isinstance(found, AwsPlan)
    return found


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssh_hosts.Site]:
    """An SSH server as it stands behind Session Manager."""
    (tmp_path / "site").mkdir()
    with ssh_hosts.running(tmp_path / "site", nodes=1) as site:
        (host,) = site.hosts
        (tmp_path / "bin").mkdir()
        aws = tmp_path / "bin" / "aws"
        aws.write_text(
            AWS.format(calls=tmp_path / "calls", python=sys.executable, address=host.address, port=host.port)
        )
        aws.chmod(0o755)
        monkeypatch.setenv("PATH", f"{aws.parent}:{Path(sys.executable).parent}:/usr/bin:/bin")
        yield site


def discovered(decided: AwsPlan, site: ssh_hosts.Site, file: Path) -> tuple[Handover, str]:
    """What people are told of a node that runs and has said its host key; and its instance's id."""
    group = decided.groups[0]
    cloud = Direct.on(file, region=decided.region, tags=decided.tags)
    vpc = cloud.make(VPC, "vpc", cidrBlock="10.0.0.0/16")
    subnet = cloud.make(SUBNET, "nodes", vpcId=vpc.id, cidrBlock="10.0.0.0/24", availabilityZone=decided.zones[0])
    tags = [{"resourceType": "instance", "tags": {**decided.tags, **group.tags}}]
    template = cloud.make(TEMPLATE, "nodes", imageId="ami-1", instanceType=group.type, tagSpecifications=tags)
    wanted = {"launchTemplateSpecification": {"launchTemplateId": template.id, "version": "$Default"}}
    cloud.make(
        FLEET,
        f"{group.name}-fleet",
        launchTemplateConfigs=[{**wanted, "overrides": [{"subnetId": subnet.id}]}],
        targetCapacitySpecification={"defaultTargetCapacityType": "on-demand", "totalTargetCapacity": 1},
    )
    (row,) = cloud.store.of(INSTANCE)
    console = CONSOLE.format(ssh_hosts.host_key(site.hosts[0]))
    cloud.store.put([replace(row, outputs={**row.outputs, "console": console})])
    told = Handover(
        stack=decided.stack,
        cloud="aws",
        region=decided.region,
        access=Access(
            user=site.handover["access"]["user"],
            key_file=str(site.folder / "key"),
            known_hosts_file=str(file.parent / "known_hosts"),
        ),
        nodes=(),
        groups=(),
        storage=(),
        store=Store(host="", address=""),
        environment=Environment(python="/p"),
    )
    return discovery.discover(Account(decided.region), decided, told).handover, row.id


@pytest.fixture
def told(
    decided: AwsPlan, site: ssh_hosts.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Handover, Node, str]]:
    with front.serving(tmp_path / "cloud.sqlite") as url:
        for name, value in {"ENDPOINT_URL": url, "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        handover, instance = discovered(decided, site, tmp_path / "cloud.sqlite")
        yield handover, handover.nodes[0], instance


def test_ssh_reaches_a_node_that_opens_no_port(told: tuple[Handover, Node, str], tmp_path: Path) -> None:
    handover, node, instance = told

    answer = ssh.run(handover, node, "echo $HOME")

    assert answer.stdout.strip().endswith("/home"), answer.stderr
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"ec2-instance-connect send-ssh-public-key --region us-east-1 --instance-id {instance} --instance-os-user "
        f"{handover.access.user} --ssh-public-key file://{handover.access.key_file}.pub",
        f"ssm start-session --region us-east-1 --target {instance} --document-name AWS-StartSSHSession "
        "--parameters portNumber=22",
    ]


def test_a_host_key_that_the_console_did_not_tell_is_refused(told: tuple[Handover, Node, str]) -> None:
    handover, node, _ = told
    known_hosts = Path(handover.access.known_hosts_file)
    known_hosts.write_text(known_hosts.read_text().replace("AAAAC3Nza", "AAAAC3Nzb"))

    assert ssh.run(handover, node, "true").returncode == 255
