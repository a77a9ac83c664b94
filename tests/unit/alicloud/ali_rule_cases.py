"""For each rule of Alibaba Cloud a cluster that it passes and one that it objects to, as changes of `cluster()`."""

from __future__ import annotations

from collections.abc import Mapping

from ali_clusters import SSH, group

Changes = Mapping[str, str | None]

TWO_ZONES = {"zone": None, "zones": "[cn-beijing-k, cn-beijing-l]"}
HANGZHOU = {"region": "cn-hangzhou", "zone": "cn-hangzhou-i"}
POOL = "{kind: reservation, id: eap-bp67acfmxazb40000000}"
FALLING_BACK = "{kind: spot, fallback: on-demand}"
SENTENCE = "buy an elasticity assurance for a for 3 months, never refunded"
A10 = {"type": "ecs.gn7i-c8g1.2xlarge", "queue_pairs": None, "fabric": "none"}
DATA = "[{name: data, kind: bucket, mount: /data}]"
ELASTIC = {"count": None, "min": 1, "max": 4}
OFFICES = ", ".join(f"203.0.113.{i}/32" for i in range(196))


def mixed(market: str, others: str = "[ecs.gn7i-c16g1.4xlarge]") -> str:
    return group(**A10, others=others, market=market)


def spot(price: float | None) -> str:
    return "{kind: spot}" if price is None else f"{{kind: spot, max_price: {price}}}"


# rule: (what it passes, what it objects to, its level, the key that it names, words that it says)
CASES: dict[str, tuple[Changes, Changes, str, str, str]] = {
    "fabric-fits-the-type": (
        {"nodes": group(fabric="required")},
        {"nodes": group(type="ecs.gn7e-c16g1.32xlarge", queue_pairs=None, fabric="required")},
        "error",
        "nodes[1].fabric",
        "has no eRDMA; choose one that has, such as ecs.ebmgn7ex.32xlarge",
    ),
    "root-fits-its-configuration": (
        {"nodes": group(**A10, root="{size_gib: 900}")},
        {"nodes": group(**A10, root="{size_gib: 900}", market=POOL)},
        "error",
        "nodes[1].root.size_gib",
        "out of a private pool takes at most 500",
    ),
    "buckets-are-mounted": (
        {"storage": DATA, "ossfs_sha256": "0" * 63 + "f"},
        {"storage": DATA},
        "warning",
        "storage[0]",
        "no node mounts /data: give `ossfs_sha256`",
    ),
    "ssh-is-not-open-to-the-world": (
        {"access": SSH.replace("203.0.113.0/24", "10.0.0.0/8")},
        {"access": SSH.replace("203.0.113.0/24", "0.0.0.0/1, 128.0.0.0/1")},
        "error",
        "access.ssh_from",
        "SSH would be open to 0.0.0.0/0",
    ),
    "placement-is-possible": (
        {**TWO_ZONES, "nodes": group(zone="cn-beijing-l")},
        {**TWO_ZONES, "nodes": group()},
        "error",
        "nodes[1].zone",
        "the fabric is of one zone and one vSwitch, and this group spans 2 zones",
    ),
    "network-holds-the-subnets": (
        {"network": "{cidr: 10.40.0.0/24}"},
        {"network": "{cidr: 10.40.0.0/24}", "nodes": group(count=200)},
        "error",
        "network.cidr",
        "has no room for the fabric subnet of cn-beijing-l",
    ),
    "gpu-has-locked-drivers": (
        {},
        {"nodes": group(**{**A10, "type": "ecs.gn5-c8g1.2xlarge"})},
        "error",
        "nodes[1].type",
        "no locked driver for P100-PCIE-16GB",
    ),
    "gpu-runs-the-locked-torch": (
        {},
        {"nodes": group(**{**A10, "type": "ecs.gn6v-c8g1.16xlarge"})},
        "error",
        "nodes[1].type",
        "ends at CUDA 12",
    ),
    "nodes-have-a-price": (
        {},
        {"nodes": group(type="ecs.ebmgn8v.48xlarge")},
        "warning",
        "nodes[1].type",
        "it counts as 0",
    ),
    "budget-has-somebody-to-tell": (
        {"budget": "{monthly: 900000, notify: [ops@example.com]}"},
        {"budget": "{monthly: 900000}"},
        "info",
        "budget",
        "name `notify`",
    ),
    "somebody-reaches-the-nodes": ({}, {"access": "{}"}, "error", "access", "nobody could log in"),
    "rules-fit-an-enterprise-group": (
        {},
        {"access": SSH.replace("203.0.113.0/24", OFFICES)},
        "error",
        "access.ssh_from",
        "a security group has 200",
    ),
    "network-leaves-the-clouds-own-range": (
        {"network": "{cidr: 192.168.0.0/16}"},
        {"network": "{cidr: 100.64.0.0/16}"},
        "error",
        "network.cidr",
        "overlaps 100.64.0.0/10",
    ),
    "nodes-fetch-what-they-need": (
        {},
        {"network": "{cidr: 10.40.0.0/16, internet: none}"},
        "warning",
        "network.internet",
        "reach Alibaba Cloud only",
    ),
    "alibaba-sells-it-this-way": (
        {},
        {"nodes": group(type="ecs.sccgn7ex.32xlarge", queue_pairs=None, market=spot(None))},
        "error",
        "nodes[1].market",
        "is not sold as spot, only as on-demand",
    ),
    "alibaba-sells-it-by-contract": (
        {},
        {"nodes": group(type="ecs.ebmgn8v.48xlarge")},
        "warning",
        "nodes[1].type",
        "the vendor's sales",
    ),
    "alibaba-sells-it-here": (
        {},
        {**HANGZHOU, "nodes": group()},
        "warning",
        "nodes[1].type",
        "but in cn-beijing, cn-shenzhen",
    ),
    "spot-cap-is-no-more-than-on-demand": (
        {"nodes": group(market=spot(100.5))},
        {"nodes": group(market=spot(300.0))},
        "error",
        "nodes[1].market.max_price",
        "300 CNY is more than ecs.ebmgn7ex.32xlarge costs on demand, 270.833",
    ),
    "mix-names-its-price": (
        {"nodes": mixed(spot(9.0))},
        {"nodes": mixed(spot(None))},
        "error",
        "nodes[1].market.max_price",
        "must name its limit",
    ),
    "only-a-scaling-group-falls-back": (
        {"nodes": group(**A10, market=FALLING_BACK)},
        {"nodes": group(market=FALLING_BACK)},
        "error",
        "nodes[1].market.fallback",
        "nodes that are declared one by one are spot alone",
    ),
    "mix-is-of-one-gpu": (
        {"nodes": mixed(spot(9.0))},
        {"nodes": mixed(spot(9.0), "[ecs.gn6i-c4g1.xlarge]")},
        "error",
        "nodes[1].others[0]",
        "has 1 × T4, and the group 1 × A10",
    ),
    "pool-is-in-one-zone": (
        {"nodes": group(**A10, market=POOL)},
        {**TWO_ZONES, "nodes": group(**A10, market=POOL)},
        "error",
        "nodes[1].zone",
        "a private pool is in one zone",
    ),
    "assurance-is-confirmed": (
        {"nodes": group(market=f"{{kind: assurance, months: 3, confirm: '{SENTENCE}'}}")},
        {"nodes": group(market="{kind: assurance, months: 3, confirm: yes please}")},
        "error",
        "nodes[1].market.confirm",
        SENTENCE,
    ),
    "assurance-costs-at-once": (
        {},
        {"nodes": group(market=f"{{kind: assurance, months: 3, confirm: '{SENTENCE}'}}")},
        "warning",
        "nodes[1].market",
        "its fee is in no table",
    ),
    "login-machine-stays": (
        {},
        {"nodes": group("{name: head, type: ecs.g7.large, count: 2}")},
        "error",
        "nodes[0].count",
        "its count is 1",
    ),
    "quota-is-shared": (
        {"nodes": group(**A10)},
        {"nodes": group(**{**A10, "type": "ecs.gn7e-c16g1.32xlarge"})},
        "info",
        "nodes[1].type",
        "q_ecs_gn7e_postpay_g",
    ),
    "nodes-work-together-over-a-fabric": (
        {"nodes": group(**A10)},
        {"nodes": group(queue_pairs=None)},
        "warning",
        "nodes[1].fabric",
        "falls back to TCP",
    ),
    "fabric-has-two-ends": (
        {"nodes": group(count=2, fabric="required")},
        {"nodes": group(count=1, fabric="required")},
        "warning",
        "nodes[1].fabric",
        "no other to speak to",
    ),
    "supercomputer-uses-its-fabric": (
        {"nodes": group(type="ecs.sccgn7ex.32xlarge", queue_pairs=None)},
        {"nodes": group(type="ecs.sccgn7ex.32xlarge", queue_pairs=None, fabric="none")},
        "warning",
        "nodes[1].fabric",
        "is sold with its RoCE network",
    ),
    "supercomputer-is-no-fleet": (
        {"nodes": group(type="ecs.sccgn7ex.32xlarge", queue_pairs=None)},
        {"nodes": group(type="ecs.sccgn7ex.32xlarge", queue_pairs=None, count=None, min=1, max=4)},
        "error",
        "nodes[1].type",
        "cannot join a Super Computing Cluster",
    ),
    "nodes-come-and-go-by-a-load": (
        {"nodes": group(**A10, **ELASTIC)},
        {"nodes": group(**{**A10, "type": "ecs.g7.xlarge"}, **ELASTIC)},
        "error",
        "nodes[1].max",
        "ecs.g7.xlarge has no GPU to tell its load",
    ),
    "a-group-never-empties": (
        {"nodes": group(**A10, **ELASTIC)},
        {"nodes": group(**A10, **{**ELASTIC, "min": 0})},
        "error",
        "nodes[1].min",
        "nothing tells the group to grow again",
    ),
    "uefi-type-has-a-uefi-image": (
        {"images": "{x86_64: ubuntu_24_04_x64_20G_alibase_20260916.vhd}", "nodes": group(**A10)},
        {"images": "{x86_64: ubuntu_24_04_x64_20G_alibase_20260916.vhd}"},
        "warning",
        "nodes[1].type",
        "boots by UEFI alone",
    ),
    "configuration-cannot-require-imdsv2": (
        {"nodes": group(**A10)},
        {"nodes": group(type="ecs.gn8is-4x.16xlarge", queue_pairs=None)},
        "warning",
        "nodes[1]",
        "answer metadata without a token",
    ),
    "fleet-of-eris-has-no-set": (
        {},
        {"nodes": group(type="ecs.gn8is-4x.16xlarge", queue_pairs=None)},
        "info",
        "nodes[1]",
        "may be some hops apart",
    ),
}
