"""The types of AWS resources that more than one rule is about."""

from __future__ import annotations

LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
LAUNCH_CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
INSTANCE = "aws:ec2/instance:Instance"
SPOT_INSTANCE = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
FLEET = "aws:ec2/fleet:Fleet"
GROUP = "aws:autoscaling/group:Group"
BUCKET = "aws:s3/bucket:Bucket"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
KEY = "aws:kms/key:Key"
VPC = "aws:ec2/vpc:Vpc"
BLOCK_PURCHASE = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"
EKS_CLUSTER = "aws:eks/cluster:Cluster"
EKS_NODES = "aws:eks/nodeGroup:NodeGroup"
EKS_ADDON = "aws:eks/addon:Addon"
PROVIDER = "pulumi:providers:aws"
