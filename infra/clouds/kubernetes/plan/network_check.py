"""Runs in every pod of a job before its training: whether the namespace's network policies are enforced.

The API server takes a NetworkPolicy whether or not anybody enforces it (Kubernetes, "Network Policies", prerequisites),
so this program tries: what the policies forbid must fail, and what they allow must work. Some network plug-ins start a
pod with everything allowed and apply its policies a moment later (amazon-vpc-cni-k8s, NETWORK_POLICY_ENFORCING_MODE
`standard`), hence the wait; the job's own container starts only after this one has ended well.

Forbidden are the instance metadata of EC2, by IPv4 and IPv6, and of ECS; the API server; and another port of the
cluster's DNS, which is a pod of another namespace. Allowed is DNS itself.

It is handed as text to the Python of the job's image: it needs the standard library and no privileges.

    python -I -c PROGRAM SECONDS    # how long the policies may take; exit code 1 with one line on what is wrong
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ANSWER_SECONDS = 2.0  # inside a cluster an answer takes milliseconds; a lost packet is sent again after one second
DNS_PORT, DNS_METRICS_PORT = 53, 9153
METADATA = {
    "the metadata of EC2": ("169.254.169.254", 80),
    "the metadata of EC2 by IPv6": ("fd00:ec2::254", 80),
    "the metadata of ECS": ("100.100.100.200", 80),
}


def main(seconds: float) -> int:
    last = time.monotonic() + seconds
    while found := problem():
        if time.monotonic() >= last:
            print("network check:", found)
            return 1
        time.sleep(1)
    return 0


def problem() -> str:
    """What is wrong at this moment, in one line; empty when nothing is."""
    servers = name_servers()
    closed = forbidden(servers)
    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(connects, [(server, DNS_PORT) for server in servers])
        reached = [name for name, taken in zip(closed, pool.map(connects, closed.values()), strict=True) if taken]
        resolves = any(list(answers))
    if reached:
        places = ", ".join("{} ({} port {})".format(name, *closed[name]) for name in reached)
        why = "the cluster's network plug-in does not enforce the network policies that forbid it"
        return f"this pod reaches {places}: {why}"
    if not resolves:
        return (
            f"the name server ({', '.join(servers)}) does not answer on TCP port {DNS_PORT}, which policy `dns` allows"
        )
    return ""


def name_servers() -> list[str]:
    lines = [line.split() for line in Path("/etc/resolv.conf").read_text().splitlines()]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def forbidden(servers: Sequence[str]) -> dict[str, tuple[str, int]]:
    """What the policies keep a pod from, by its name."""
    api = (os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]))
    others = {f"the metrics of name server {server}": (server, DNS_METRICS_PORT) for server in servers}
    return {**METADATA, "the API server": api, **others}


def connects(address: tuple[str, int]) -> bool:
    """Whether a TCP connection to it is made."""
    try:
        socket.create_connection(address, timeout=ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
