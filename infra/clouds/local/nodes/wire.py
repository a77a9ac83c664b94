"""The network of local machines: one bridge a site, one named network namespace and one veth pair a machine."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

from infra.clouds.local.nodes import site
from infra.clouds.local.nodes.processes import run
from infra.clouds.local.nodes.site import NodeSpec

NAMESPACES = Path("/run/netns")


def bridge(place: Path) -> str:
    return f"{site.tag(place)}-br"


def problems(place: Path, cidr: str) -> list[str]:
    """Whether another link uses the network already."""
    network = ipaddress.ip_network(cidr)
    for link in json.loads(run("ip", "-json", "address")):
        for address in link["addr_info"]:
            if address["family"] == "inet" and link["ifname"] != bridge(place):
                existing = ipaddress.ip_interface(f"{address['local']}/{address['prefixlen']}").network
                if existing.overlaps(network):
                    return [
                        f"{cidr} is in use: {link['ifname']} has {existing}; choose another `network.cidr`, "
                        "or delete the stack that uses it"
                    ]
    return []


def connect(spec: NodeSpec, machine: dict[str, str]) -> Path:
    """Creates the machine's namespace with its one interface, eth0, and returns the namespace's file."""
    name, switch = site.kernel_name(spec.site, spec.name), bridge(spec.site)
    size = ipaddress.ip_network(machine["cidr"]).prefixlen
    with site.locked(spec.site / "nodes"):
        if not Path("/sys/class/net", switch).exists():
            run("ip", "link", "add", switch, "type", "bridge")
        run("ip", "address", "replace", f"{machine['gateway']}/{size}", "dev", switch)
        run("ip", "link", "set", switch, "up")
    run("ip", "netns", "add", name)
    run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "link", "set", name, "master", switch, "up")
    run("ip", "-n", name, "address", "add", f"{spec.address}/{size}", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "eth0", "up")
    run("ip", "-n", name, "link", "set", "lo", "up")
    return NAMESPACES / name
