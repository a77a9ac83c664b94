"""What the rules for every cloud are about at Alibaba Cloud."""

from __future__ import annotations

from infra.clouds.alicloud.policy.types import STARTED
from infra.policy.tables import ArnForm, Tables

TABLES = Tables(
    providers=("pulumi:providers:alicloud",),
    tagged=(
        "alicloud:cs/managedKubernetes:ManagedKubernetes",
        "alicloud:cs/nodePool:NodePool",
        "alicloud:ecs/ecsDisk:EcsDisk",
        "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate",
        "alicloud:ecs/eipAddress:EipAddress",
        "alicloud:ecs/elasticityAssurance:ElasticityAssurance",
        "alicloud:ecs/instance:Instance",
        "alicloud:ecs/securityGroup:SecurityGroup",
        "alicloud:ess/scalingConfiguration:ScalingConfiguration",
        "alicloud:ess/scalingGroup:ScalingGroup",
        "alicloud:kms/key:Key",
        "alicloud:oss/bucket:Bucket",
        "alicloud:ram/role:Role",
        "alicloud:vpc/natGateway:NatGateway",
        "alicloud:vpc/network:Network",
        "alicloud:vpc/switch:Switch",
    ),
    with_user_data=STARTED,
    secrets={"an access key of Alibaba Cloud": r"\bLTAI[A-Za-z0-9]{12,}\b"},
    arns=(ArnForm(prefix="acs", parts=5, flat=("oss", "mns")),),
)
