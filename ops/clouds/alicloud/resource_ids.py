"""How resources of Pulumi's Alibaba Cloud types are matched in the account: by tag, by name, or by their owner.

Sources: Tag Service, ListTagResources and "Services that support tags" (ARNs: arn:acs:<product>:<region>:<account>:
<type>/<id>, types as in the public template ACS-TAG-TagResources of CloudOps Orchestration Service); the "Import"
section of each resource's page of the Terraform provider (ids). What has a name that the program chooses has an id
that follows from it: whether it is there, the engine's next refresh finds out.
"""

from __future__ import annotations

TAGGED = {
    "alicloud:cs/managedKubernetes:ManagedKubernetes": "cs/cluster",
    "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate": "ecs/launchtemplate",
    "alicloud:ecs/eipAddress:EipAddress": "vpc/eip",
    "alicloud:ecs/elasticityAssurance:ElasticityAssurance": "ecs/elasticityassurance",
    "alicloud:ecs/instance:Instance": "ecs/instance",
    "alicloud:ecs/securityGroup:SecurityGroup": "ecs/securitygroup",
    "alicloud:ess/scalingGroup:ScalingGroup": "ess/scalinggroup",
    "alicloud:kms/key:Key": "kms/key",
    "alicloud:oss/bucket:Bucket": "oss/bucket",
    "alicloud:vpc/flowLog:FlowLog": "vpc/flowlog",
    "alicloud:vpc/natGateway:NatGateway": "vpc/natgateway",
    "alicloud:vpc/network:Network": "vpc/vpc",
    "alicloud:vpc/switch:Switch": "vpc/vswitch",
}

# The one property for which the engine generates a name (pulumi/pulumi-terraform-bridge#487).
NAMED = {"alicloud:oss/bucket:Bucket": "bucket"}

# Ids built from a resource's own arguments, with references replaced by ids.
FOLLOWING = {
    "alicloud:cms/alarmContact:AlarmContact": "{alarmContactName}",
    "alicloud:cms/alarmContactGroup:AlarmContactGroup": "{alarmContactGroupName}",
    "alicloud:cms/eventRule:EventRule": "{ruleName}",
    "alicloud:cs/kubernetesAddon:KubernetesAddon": "{clusterId}:{name}",
    "alicloud:ecs/ecsKeyPair:EcsKeyPair": "{keyPairName}",
    "alicloud:ecs/eipAssociation:EipAssociation": "{allocationId}:{instanceId}",
    "alicloud:ecs/securityGroupRule:SecurityGroupRule": (
        "{securityGroupId}:{type}:{ipProtocol}:{portRange}:{nicType}:{cidrIp}:{policy}:1"
    ),
    "alicloud:log/project:Project": "{projectName}",
    "alicloud:log/store:Store": "{projectName}:{logstoreName}",
    "alicloud:message/serviceQueue:ServiceQueue": "{queueName}",
    "alicloud:oss/bucketAcl:BucketAcl": "{bucket}",
    "alicloud:oss/bucketHttpsConfig:BucketHttpsConfig": "{bucket}",
    "alicloud:oss/bucketObject:BucketObject": "{key}",
    "alicloud:oss/bucketPolicy:BucketPolicy": "{bucket}",
    "alicloud:oss/bucketPublicAccessBlock:BucketPublicAccessBlock": "{bucket}",
    "alicloud:ram/policy:Policy": "{policyName}",
    "alicloud:ram/role:Role": "{roleName}",
    "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment": "role:{policyName}:{policyType}:{roleName}",
}
