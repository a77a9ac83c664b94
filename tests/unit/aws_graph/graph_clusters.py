"""Clusters that between them use every part of the AWS plan, as stack files; not those that ship with the project."""

from __future__ import annotations

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBE7eBqI4DnTR0W4H8mJwJuC7sLZS8Z0zYbJzJ1mZ0aB ops"
IMAGES = "{x86_64: ami-0123456789abcdef0, arm64: ami-0fedcba9876543210}"

FABRIC = f"""
cloud: aws
region: us-east-1
zone: us-east-1d
network: {{cidr: 10.40.0.0/16}}
access: {{ssh_from: [203.0.113.0/24, 198.51.100.0/24], ssm: true, public_key: "{KEY}"}}
images: {IMAGES}
nodes:
  - {{name: head, type: m6i.large, count: 1}}
  - name: trainer
    type: p4d.24xlarge
    count: 4
    fabric: required
    market: {{kind: reservation, id: cr-0123456789abcdef0}}
storage:
  - {{name: data, kind: bucket, mount: /data}}
  - {{name: fast, kind: lustre, mount: /fast, size_gib: 4800, bucket: data}}
budget: {{hourly: 200, monthly: 70000, notify: [ops@example.com]}}
"""

SPOT = f"""
cloud: aws
region: us-east-1
zone: us-east-1d
network: {{cidr: 10.41.0.0/16}}
access: {{ssh_from: [203.0.113.0/24], public_key: "{KEY}"}}
images: {IMAGES}
nodes:
  - {{name: head, type: m6i.large, count: 1}}
  - {{name: trainer, type: p4d.24xlarge, count: 4, market: {{kind: spot, max_price: 14.0, fallback: on-demand}}}}
"""

BLOCK = f"""
cloud: aws
region: us-east-1
zone: us-east-1d
network: {{cidr: 10.42.0.0/16, internet: none}}
access: {{ssm: true}}
images: {IMAGES}
nodes:
  - {{name: trainer, type: p5.48xlarge, count: 2, fabric: required, market: {{kind: block, id: cr-0123456789abcdef0}}}}
"""

ELASTIC = f"""
cloud: aws
region: us-east-1
zones: [us-east-1a, us-east-1b]
network: {{cidr: 10.43.0.0/16}}
access: {{ssm: true}}
images: {IMAGES}
nodes:
  - {{name: server, type: g6.xlarge, min: 1, max: 6, market: {{kind: spot, max_price: 0.6, fallback: on-demand}}}}
  - {{name: steady, type: g6.xlarge, min: 1, max: 2}}
"""

ALONE = f"""
cloud: aws
region: us-east-1
zone: us-east-1a
network: {{cidr: 10.44.0.0/16}}
access: {{ssh_from: [203.0.113.0/24], public_key: "{KEY}"}}
nodes: [{{name: dev, type: g5.xlarge, count: 1}}]
"""

EKS = """
cloud: aws
region: us-east-1
zones: [us-east-1d, us-east-1a]
network: {cidr: 10.46.0.0/16}
access: {ssm: true}
eks:
  version: "1.35"
  admins: ["arn:aws:iam::111122223333:role/ops", "arn:aws:iam::444455556666:role/team/ops"]
  api_from: [8.8.8.0/24]
nodes:
  - {name: system, type: m6i.large, count: 2}
  - name: trainer
    type: p4d.24xlarge
    count: 4
    zone: us-east-1d
    fabric: required
    market: {kind: reservation, id: cr-0123456789abcdef0}
  - {name: cheap, type: g6.xlarge, count: 1, zone: us-east-1d, market: {kind: spot}}
storage:
  - {name: data, kind: bucket, mount: /data}
  - {name: fast, kind: lustre, mount: /fast, size_gib: 4800}
"""

CLUSTERS = {"fabric": FABRIC, "spot": SPOT, "block": BLOCK, "elastic": ELASTIC, "alone": ALONE, "eks": EKS}
