"""The types of Alibaba Cloud resources that start nodes."""

from __future__ import annotations

INSTANCE = "alicloud:ecs/instance:Instance"
TEMPLATE = "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate"
CONFIGURATION = "alicloud:ess/scalingConfiguration:ScalingConfiguration"
POOL = "alicloud:cs/nodePool:NodePool"
STARTED = (INSTANCE, TEMPLATE, CONFIGURATION, POOL)
