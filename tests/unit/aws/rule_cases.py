"""For each rule of AWS a cluster that it passes and one that it objects to, as changes of `clusters.cluster`."""

from __future__ import annotations

from collections.abc import Mapping

from clusters import HEAD, KEY, SSH, group, with_head

Changes = Mapping[str, str | None]
TWO_ZONES = {"zone": None, "zones": "[us-east-1a, us-east-1b]"}
RESERVED, BLOCK = "{kind: reservation, id: cr-0123456789abcdef0}", "{kind: block, id: cr-0123456789abcdef0}"
MEANT = "buy cb-0123456789abcdef0 for at most 40000 USD, never refunded"


def bought(confirm: str) -> str:
    offer = f"{{offering: cb-0123456789abcdef0, hours: 48, usd_at_most: 40000.0, confirm: '{confirm}'}}"
    return group(type="p5.48xlarge", market=f"{{kind: block, buy: {offer}}}")


ECDSA = f"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABB{'A' * 87}= nobody"
OFFICES = ", ".join(f"203.0.113.{i}/32" for i in range(60))


def reserved_in(region: str) -> str:
    arn = f"arn:aws:ec2:{region}:111122223333:placement-group/held"
    return group(market=f"{{kind: reservation, id: cr-0123456789abcdef0, placement_group: '{arn}'}}")


# rule: (what it passes, what it objects to, its level, the key that it names, words that it says)
CASES: dict[str, tuple[Changes, Changes, str, str, str]] = {
    "fabric-fits-the-type": (
        {"nodes": group(type="g6.8xlarge", fabric="required")},
        {"nodes": group(type="g6.4xlarge", fabric="required")},
        "error",
        "nodes[0].fabric",
        "this instance type has no EFA",
    ),
    "ssh-is-not-open-to-the-world": (
        {"access": SSH.replace("203.0.113.0/24", "10.0.0.0/8"), "nodes": group(fabric="none")},
        {"access": SSH.replace("203.0.113.0/24", "0.0.0.0/1, 128.0.0.0/1"), "nodes": group(fabric="none")},
        "error",
        "access.ssh_from",
        "SSH would be open to 0.0.0.0/0",
    ),
    "placement-is-possible": (
        {**TWO_ZONES, "nodes": group(zone="us-east-1b")},
        {**TWO_ZONES, "nodes": group()},
        "error",
        "nodes[0].zone",
        "the fabric does not cross availability zones, and this group spans 2",
    ),
    "network-holds-the-subnets": (
        {"network": "{cidr: 10.40.0.0/24}"},
        {"network": "{cidr: 10.40.0.0/24}", "nodes": group(count=200)},
        "error",
        "network.cidr",
        "the smallest network that holds all is a /23",
    ),
    "gpu-has-locked-drivers": (
        {"nodes": group(type="g6.xlarge", fabric="none")},
        {"nodes": group(type="g5g.xlarge", fabric="none")},
        "error",
        "nodes[0].type",
        "no driver is locked for T4g beside an arm64 processor",
    ),
    "nodes-come-and-go-by-a-load": (
        {"nodes": group(type="g6.xlarge", count=None, min=1, max=4, fabric="none")},
        {"nodes": group(type="c7i.large", count=None, min=1, max=4, fabric="none")},
        "error",
        "nodes[0].max",
        "c7i.large has no GPU to tell its load",
    ),
    "a-group-never-empties": (
        {"nodes": group(type="g6.xlarge", count=None, min=1, max=4, fabric="none")},
        {"nodes": group(type="g6.xlarge", count=None, min=0, max=4, fabric="none")},
        "error",
        "nodes[0].min",
        "nothing tells the group to grow again",
    ),
    "a-job-has-one-group": (
        {"nodes": f"[{group()[1:-1]}, {HEAD}]"},
        {"nodes": f"[{group()[1:-1]}, {group(name='b')[1:-1]}]"},
        "info",
        "nodes",
        "a and b do not reach each other",
    ),
    "type-is-sold-this-way": (
        {"nodes": group(market=BLOCK)},
        {"nodes": group(type="g6.48xlarge", market=BLOCK)},
        "error",
        "nodes[0].market",
        "g6.48xlarge is not sold as capacity-block, only as on-demand or spot",
    ),
    "type-is-offered-in-the-region": (
        {"region": "us-west-2", "zone": "us-west-2a", "nodes": group(type="p5e.48xlarge")},
        {"nodes": group(type="p5e.48xlarge")},
        "error",
        "nodes[0].type",
        "no zone of us-east-1 offers p5e.48xlarge",
    ),
    "reserved-capacity-is-in-one-zone": (
        {**TWO_ZONES, "nodes": group(market=RESERVED, fabric="none", zone="us-east-1a")},
        {**TWO_ZONES, "nodes": group(market=RESERVED, fabric="none")},
        "error",
        "nodes[0].zone",
        "cr-0123456789abcdef0 is in one zone, and this group spans 2",
    ),
    "block-holds-the-nodes": (
        {"nodes": group(market=BLOCK, count=64)},
        {"nodes": group(market=BLOCK, count=65)},
        "error",
        "nodes[0].count",
        "65 is more than a capacity block has: 64",
    ),
    "purchase-is-confirmed": (
        {"nodes": bought(MEANT)},
        {"nodes": bought(MEANT.replace("40000", "50000"))},
        "error",
        "nodes[0].market.buy.confirm",
        f'non-refundable: to confirm, set `confirm: "{MEANT}"`',
    ),
    "purchase-costs-at-once": (
        {"nodes": group(market=BLOCK)},
        {"nodes": bought(MEANT)},
        "warning",
        "nodes[0].market.buy",
        "`up` buys cb-0123456789abcdef0 for up to 40,000.00 USD",
    ),
    "reserved-group-is-in-the-region": (
        {"nodes": reserved_in("us-east-1")},
        {"nodes": reserved_in("us-east-2")},
        "error",
        "nodes[0].market.placement_group",
        "is in us-east-2, and the cluster is in us-east-1",
    ),
    "mig-layout-fits-the-gpu": (
        {"nodes": group(mig="[4g.20gb, 3g.20gb]", fabric="none")},
        {"nodes": group(mig="[4g.20gb, 4g.20gb]", fabric="none")},
        "error",
        "nodes[0].mig",
        "4g.20gb and 4g.20gb do not fit on A100-SXM4-40GB together",
    ),
    "mig-has-no-fabric": (
        {"nodes": group(mig="[7g.40gb]", fabric="none")},
        {"nodes": group(mig="[7g.40gb]")},
        "error",
        "nodes[0].fabric",
        "slices of a GPU do not use it",
    ),
    "two-groups-share-no-reservation": (
        {"nodes": group(market=RESERVED)[:-1] + ", " + group(name="b", market=RESERVED.replace("f0}", "f1}"))[1:]},
        {"nodes": group(market=RESERVED)[:-1] + ", " + group(name="b", market=RESERVED)[1:]},
        "warning",
        "nodes[1].market.id",
        "cr-0123456789abcdef0 is the reservation of nodes[0] already",
    ),
    "reserved-capacity-is-used": (
        {"nodes": group(market=RESERVED)},
        {"nodes": group(market=RESERVED, count=None, min=1, max=4)},
        "warning",
        "nodes[0].min",
        "a group that shrinks saves nothing",
    ),
    "spot-has-a-cap": (
        {"nodes": group(market="{kind: spot, max_price: 21.9}")},
        {"nodes": group(market="{kind: spot}")},
        "error",
        "nodes[0].market.max_price",
        "is missing: name the most USD",
    ),
    "spot-cap-is-below-on-demand": (
        {"nodes": group(market="{kind: spot, max_price: 21.9}")},
        {"nodes": group(market="{kind: spot, max_price: 32.77}")},
        "warning",
        "nodes[0].market.max_price",
        "32.77 USD is more than the on-demand price, 21.9576",
    ),
    "head-stays": (
        {"nodes": group(name="head", type="m6i.large", count=1)},
        {"nodes": group(name="head", type="m6i.large", count=2)},
        "error",
        "nodes[0].count",
        "the group `head` is the one login machine",
    ),
    "network-is-one-a-vpc-can-have": (
        {"network": "{cidr: 100.64.0.0/16}"},
        {"network": "{cidr: 169.254.0.0/16}"},
        "error",
        "network.cidr",
        "169.254.0.0/16 is not a unicast range; take one of 10.0.0.0/8",
    ),
    "network-is-not-somebody-elses": (
        {"network": "{cidr: 172.31.0.0/16}"},
        {"network": "{cidr: 172.32.0.0/16}"},
        "warning",
        "network.cidr",
        "172.32.0.0/16 is public address space",
    ),
    "login-key-can-be-imported": (
        {"access": SSH, "nodes": group(fabric="none")},
        {"access": SSH.replace(KEY, ECDSA), "nodes": group(fabric="none")},
        "error",
        "access.public_key",
        "EC2 takes no key of type ecdsa-sha2-nistp256, only ssh-ed25519 and ssh-rsa",
    ),
    "zone-is-no-local-zone": (
        {},
        {"zone": "us-east-1-atl-2a"},
        "error",
        "zone",
        "us-east-1-atl-2a is a Local Zone; name a zone of the region, such as us-east-1a",
    ),
    "somebody-can-log-in": ({}, {"access": "{}"}, "error", "access", "nobody could log in"),
    "public-address-needs-a-single-interface": (
        {"access": SSH, "nodes": group(type="g6.8xlarge", fabric="none")},
        {"access": SSH, "nodes": group(type="g6.8xlarge", fabric="required")},
        "error",
        "nodes[0]",
        "its 2 network interfaces rule out a public address",
    ),
    "rules-fit-a-security-group": (
        {"access": SSH.replace("203.0.113.0/24", OFFICES), "nodes": group(count=1)},
        {"access": SSH.replace("203.0.113.0/24", OFFICES + ", 198.51.100.0/24"), "nodes": group(count=1)},
        "error",
        "access.ssh_from",
        "61 ingress rules for a; a security group has 60",
    ),
    "nodes-without-internet-stand-inside": (
        {"network": "{cidr: 10.40.0.0/16, internet: none}", "access": SSH, "nodes": with_head(fabric="none")},
        {
            "network": "{cidr: 10.40.0.0/16, internet: none}",
            "access": SSH,
            "nodes": group(type="g6.xlarge", fabric="none"),
        },
        "error",
        "network.internet",
        "its nodes have public IPs",
    ),
    "nodes-can-fetch-what-they-need": (
        {},
        {"network": "{cidr: 10.40.0.0/16, internet: none}"},
        "warning",
        "network.internet",
        "nodes reach AWS only",
    ),
    "gpu-runs-the-locked-torch": (
        {"nodes": group(type="g4dn.8xlarge")},
        {"nodes": group(type="p3dn.24xlarge")},
        "error",
        "nodes[0].type",
        "V100-SXM2-32GB ends at CUDA 12, and jobs run on CUDA 13",
    ),
    "nodes-of-a-gang-have-a-fabric": (
        {"nodes": group(type="g6.4xlarge", fabric="none")},
        {"nodes": group(type="g6.4xlarge")},
        "warning",
        "nodes[0].type",
        "g6.4xlarge has no EFA: its GPUs speak over TCP",
    ),
    "fabric-joins-nodes": (
        {"nodes": group(count=2, fabric="required")},
        {"nodes": group(count=1, fabric="required")},
        "warning",
        "nodes[0].fabric",
        "a single node has no other to speak to",
    ),
    "bandwidth-layout-has-cards": (
        {"nodes": group(type="p5.48xlarge", layout="bandwidth")},
        {"nodes": group(type="g6.8xlarge", layout="bandwidth")},
        "warning",
        "nodes[0].layout",
        "g6.8xlarge has IP traffic on one card as it is",
    ),
}
