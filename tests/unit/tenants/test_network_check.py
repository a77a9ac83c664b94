"""The check that every pod of a job begins with, in network namespaces whose policies are packet filters."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from infra.clouds.kubernetes.plan.jobs import NETWORK_CHECK

API, DNS = "10.100.0.1", "10.100.0.10"
METADATA = ["169.254.169.254", "100.100.100.200", "fd00:ec2::254"]
EVERYTHING = [(API, 443), (DNS, 53), (DNS, 9153), *((address, 80) for address in METADATA)]
# A pod's place: all that it could reach listens on its own loopback; the check sees that through the filters.
POD = """\
import json, socket, subprocess, sys
given = json.loads(sys.argv[1])
run = lambda line: subprocess.run(line, shell=True, check=True)
run("ip link set lo up")
for address in given["addresses"]:
    run(f"ip address add {address} dev lo" + (" nodad" if ":" in address else ""))
run(f"mount --bind {given['resolv']} /etc/resolv.conf")
kept = [socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        for address, port in given["listens"]]
if given["filters"]:
    later = subprocess.Popen(given["filters"], shell=True)
    given["late"] or later.wait()
check = [sys.executable, "-I", "-c", given["check"], given["seconds"]]
environment = {"KUBERNETES_SERVICE_HOST": given["api"], "KUBERNETES_SERVICE_PORT": "443"}
sys.exit(subprocess.run(check, env=environment).returncode)
"""
# What the policies of a tenant come to: DNS, and nothing else that is not the pod's own namespace.
ENFORCED = f"""\
nft add table inet pod
nft add chain inet pod out '{{ type filter hook output priority 0; }}'
nft add rule inet pod out ip daddr {DNS} tcp dport 53 accept
nft add rule inet pod out tcp flags syn / syn,ack drop
"""

pytestmark = pytest.mark.skipif(
    shutil.which("nft") is None
    or subprocess.run(["unshare", "--net", "--mount", "true"], check=False, capture_output=True).returncode != 0,
    reason="needs nft, and root for a network namespace",
)


def checked(
    place: Path, listens: Sequence[tuple[str, int]], filters: str = "", seconds: str = "0", *, late: bool = False
) -> tuple[int, str]:
    """The exit code and the output of the check in a pod whose cluster listens so. late: the filters come after it."""
    resolv = place / "resolv.conf"
    resolv.write_text(f"search research.svc.cluster.local\nnameserver {DNS}\n")
    given = {
        "addresses": [API, DNS, *METADATA],
        "resolv": str(resolv),
        "listens": listens,
        "filters": filters,
        "late": late,
        "check": NETWORK_CHECK,
        "seconds": seconds,
        "api": API,
    }
    ended = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-c", POD, json.dumps(given)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_a_pod_that_reaches_the_api_server_does_not_begin(tmp_path: Path) -> None:
    code, said = checked(tmp_path, [(API, 443), (DNS, 53)])

    why = "the cluster's network plug-in does not enforce the network policies that forbid it"
    assert (code, said) == (1, f"network check: this pod reaches the API server ({API} port 443): {why}\n")


@pytest.mark.parametrize("address", METADATA)
def test_a_pod_that_reaches_metadata_does_not_begin(tmp_path: Path, address: str) -> None:
    code, said = checked(tmp_path, [(address, 80), (DNS, 53)])

    assert (code, f"({address} port 80)" in said) == (1, True)


def test_a_pod_that_reaches_another_namespace_does_not_begin(tmp_path: Path) -> None:
    code, said = checked(tmp_path, [(DNS, 53), (DNS, 9153)])

    assert (code, f"the metrics of name server {DNS}" in said) == (1, True)


def test_a_pod_whose_name_server_does_not_answer_does_not_begin(tmp_path: Path) -> None:
    code, said = checked(tmp_path, [])

    assert (code, f"the name server ({DNS}) does not answer on TCP port 53" in said) == (1, True)


def test_a_pod_whose_policies_are_enforced_begins(tmp_path: Path) -> None:
    assert checked(tmp_path, EVERYTHING, ENFORCED) == (0, "")


def test_a_pod_waits_for_policies_that_come_after_its_start(tmp_path: Path) -> None:
    assert checked(tmp_path, EVERYTHING, f"sleep 1\n{ENFORCED}", "600", late=True) == (0, "")


def test_a_pod_that_is_not_told_of_the_api_server_does_not_begin() -> None:
    command = [sys.executable, "-I", "-c", NETWORK_CHECK, "0"]

    assert subprocess.run(command, env={}, capture_output=True, check=False).returncode == 1
