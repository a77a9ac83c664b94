"""Stack files that between them use every text that a stack file can hold."""

from __future__ import annotations

from typing import Any

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQxcqKw0RcA9hlgHxzU1FI0MqoHJqJQAqzrJtqB/+HV ops@example.com"
IMAGE = "registry.example.com/train:2.15@sha256:" + "0123456789abcdef" * 4
TENANT = {
    "name": "research",
    "image": IMAGE,
    "form": "job",
    "serving": {"deployment": "model", "min": 1, "max": 2},
    "volumes": [{"name": "work", "kind": "volume", "mount": "/work", "size_gib": 100, "storage_class": "shared"}],
}
BUDGET = {"monthly": 100.0, "notify": ["ops@example.com"]}
RESERVED = {"kind": "reservation", "id": "cr-0123456789abcdef0"}
PLACED = {**RESERVED, "placement_group": "arn:aws:ec2:us-east-1:111122223333:placement-group/x"}
BOUGHT = {"offering": "cb-0123456789abcdef0", "hours": 24, "usd_at_most": 100.0, "confirm": "yes"}
BLOCK = {"kind": "block", "id": "cr-0123456789abcdef0"}

CLUSTERS: list[dict[str, Any]] = [
    {
        "cloud": "local",
        "isolation": "process",
        "network": {"cidr": "127.0.0.0/24", "port": 2222},
        "nodes": [{"name": "node", "count": 1, "addresses": ["127.0.0.11"]}],
        "access": {"public_key": KEY},
        "storage": [{"name": "data", "kind": "folder", "mount": "/data"}],
    },
    {
        "cloud": "aws",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "network": {"cidr": "10.40.0.0/16"},
        "access": {"ssh_from": ["203.0.113.0/24"], "public_key": KEY},
        "budget": BUDGET,
        "images": {"x86_64": "ami-0123456789abcdef0", "arm64": "ami-0123456789abcdef1"},
        "nodes": [
            {"name": "head", "type": "m6i.large", "count": 1, "zone": "us-east-1a"},
            {"name": "a", "type": "p4d.24xlarge", "count": 1, "market": PLACED, "mig": ["3g.20gb", "3g.20gb"]},
            {"name": "b", "type": "p4d.24xlarge", "count": 1, "market": {"kind": "block", "buy": BOUGHT}},
            {"name": "c", "type": "p4d.24xlarge", "count": 1, "market": BLOCK},
        ],
        "storage": [
            {"name": "data", "kind": "bucket", "mount": "/data"},
            {"name": "fast", "kind": "lustre", "mount": "/fast", "size_gib": 1200, "bucket": "data"},
        ],
    },
    {
        "cloud": "aws",
        "region": "us-east-1",
        "zones": ["us-east-1a", "us-east-1b"],
        "network": {"cidr": "10.40.0.0/16"},
        "nodes": [{"name": "system", "type": "m6i.large", "count": 2}],
        "eks": {
            "version": "1.35",
            "admins": ["arn:aws:iam::111122223333:role/ops"],
            "api_from": ["203.0.113.0/24"],
            "tenant": TENANT,
        },
    },
    {
        "cloud": "alicloud",
        "region": "cn-beijing",
        "zone": "cn-beijing-l",
        "network": {"cidr": "10.40.0.0/16"},
        "access": {"ssh_from": ["203.0.113.0/24"], "public_key": KEY},
        "budget": BUDGET,
        "ossfs_sha256": "0" * 64,
        "images": {"x86_64": "ubuntu_24_04_x64_20G_alibase_20260916.vhd"},
        "nodes": [
            {"name": "head", "type": "ecs.g7.large", "count": 1, "zone": "cn-beijing-l"},
            {
                "name": "a",
                "type": "ecs.g7.large",
                "others": ["ecs.gn7i-c8g1.2xlarge"],
                "count": 1,
                "market": {"kind": "spot"},
            },
            {
                "name": "b",
                "type": "ecs.g7.large",
                "count": 1,
                "market": {"kind": "reservation", "id": "eap-bp67acfmxazb4000"},
            },
            {
                "name": "c",
                "type": "ecs.g7.large",
                "count": 1,
                "market": {"kind": "assurance", "months": 1, "confirm": "yes"},
            },
        ],
        "storage": [{"name": "data", "kind": "bucket", "mount": "/data"}],
        "copies": [{"stack": "other", "storage": "data", "to": "data", "prefix": "runs/gpt", "gib_per_month": 1}],
    },
    {
        "cloud": "alicloud",
        "region": "cn-beijing",
        "zones": ["cn-beijing-l", "cn-beijing-k"],
        "network": {"cidr": "10.40.0.0/16"},
        "nodes": [{"name": "system", "type": "ecs.g7.large", "count": 2}],
        "ack": {"version": "1.35", "tenant": TENANT},
    },
    {
        "cloud": "machines",
        "python": "/opt/venv/bin/python",
        "access": {
            "user": "ops",
            "key_file": "~/.ssh/gpufleet",
            "control": "10.60.0.2",
            "ssh_from": ["203.0.113.0/24"],
        },
        "nodes": [
            {
                "name": "trainer",
                "gpu": "H100-SXM5-80GB",
                "gpus": 8,
                "fabric": {
                    "kind": "infiniband",
                    "hcas": ["mlx5_0"],
                    "gbits": 400,
                    "partition": {"key": "0x8012", "index": 1},
                },
                "disks": [{"name": "scratch", "mount": "/scratch", "devices": ["/dev/disk/by-id/nvme-eui.01"]}],
                "hosts": [
                    {
                        "name": "dgx-1",
                        "address": "10.60.1.11",
                        "rack": "a",
                        "bmc": "10.61.1.11",
                        "host_key": KEY,
                        "prefix": "/home/ops/node",
                    }
                ],
            },
            {
                "name": "other",
                "gpu": "H100-SXM5-80GB",
                "gpus": 8,
                "fabric": {"kind": "roce", "hcas": ["mlx5_0"], "gbits": 400, "gid_index": 3, "traffic_class": 106},
                "hosts": [{"name": "dgx-2", "address": "10.60.1.12", "bmc": "10.61.1.12", "host_key": KEY}],
            },
        ],
        "storage": [{"name": "data", "kind": "folder", "mount": "/data"}],
        "power": {"wake": ["ipmitool", "-H", "{bmc}"], "sleep": ["ipmitool", "-H", "{bmc}"]},
    },
    {
        "cloud": "kubernetes",
        "kubeconfig": "~/.kube/config",
        "context": "a100",
        "tenant": "research",
        "image": IMAGE,
        "components": {"driver": "image", "device_plugin": "operator"},
        "nodes": [
            {
                "name": "trainer",
                "gpu": "A100-SXM4-40GB",
                "gpus": 8,
                "count": 4,
                "mig": "3g.20gb",
                "labels": {"node.kubernetes.io/instance-type": "p4d.24xlarge"},
                "topology": ["topology.kubernetes.io/zone"],
                "fabric": {"resource": "vpc.amazonaws.com/efa", "count": 4},
            }
        ],
        "storage": [{"name": "data", "kind": "volume", "mount": "/data", "size_gib": 100, "storage_class": "shared"}],
        "serving": {"deployment": "model", "min": 1, "max": 4},
    },
]
