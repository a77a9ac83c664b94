"""The resource types of pulumi-alicloud that the stacks use.

Source: the provider's page of each resource (registry.terraform.io, aliyun/alicloud: "Attributes Reference" and
"Import" for ids, "ForceNew" for what is fixed).
"""

from __future__ import annotations

from collections.abc import Mapping

from cloud_provider.kinds import Kind

ACCOUNT = "1234567890123456"


def type_of(module: str, name: str) -> str:
    """The token of a type, such as alicloud:vpc/network:Network."""
    return f"alicloud:{module}/{name[0].lower()}{name[1:]}:{name}"


def hostname(id_: str) -> str:
    """What an instance calls itself where nobody has named it."""
    return f"iz{id_.removeprefix('i-')}z"


def tagged(product: str, resource: str) -> str:
    """The ARN by which the Tag Service lists a resource (its API, ListTagResources)."""
    return f"arn:acs:{product}:{{region}}:{{account}}:{resource}/{{id}}"


VPC, VSWITCH = type_of("vpc", "Network"), type_of("vpc", "Switch")
BUCKET, INSTANCE = type_of("oss", "Bucket"), type_of("ecs", "Instance")
TEMPLATE = type_of("ecs", "EcsLaunchTemplate")
SCALING_GROUP, CONFIGURATION = type_of("ess", "ScalingGroup"), type_of("ess", "ScalingConfiguration")
MIX, NODE_POOL = type_of("ecs", "AutoProvisioningGroup"), type_of("cs", "NodePool")
DEPLOYMENT_SET, HPC = type_of("ecs", "EcsDeploymentSet"), type_of("ecs", "HpcCluster")
ASSURANCE = type_of("ecs", "ElasticityAssurance")
KEY, RULE, SNAT = type_of("kms", "Key"), type_of("ess", "ScalingRule"), type_of("vpc", "SnatEntry")
CLUSTER = type_of("cs", "ManagedKubernetes")
IMAGES = "alicloud:ecs/getImages:getImages"
VERSIONS = "alicloud:cs/getKubernetesVersion:getKubernetesVersion"
CREDENTIAL = "alicloud:cs/getClusterCredential:getClusterCredential"

_SETTING = Kind(id="{bucket}", fixed=("bucket",), part_of="bucket")

NETWORK = {
    VPC: Kind(
        id="vpc-{hex}",
        arn=tagged("vpc", "vpc"),
        outputs={"routeTableId": "vtb-{hex}", "routerId": "vrt-{hex}", "status": "Available"},
        fixed=("isDefault", "ipv4IpamPoolId"),
    ),
    VSWITCH: Kind(
        id="vsw-{hex}",
        arn=tagged("vpc", "vswitch"),
        outputs={"status": "Available"},
        fixed=("cidrBlock", "vpcId", "zoneId"),
    ),
    type_of("vpc", "NatGateway"): Kind(
        id="ngw-{hex}",
        arn=tagged("vpc", "natgateway"),
        outputs={"snatTableIds": "stb-{hex}", "forwardTableIds": "ftb-{hex}", "status": "Available"},
        fixed=("networkType", "vpcId", "vswitchId"),
    ),
    SNAT: Kind(
        id="{snatTableId}:snat-{hex}",
        outputs={"snatEntryId": "snat-{hex}", "status": "Available"},
        fixed=("snatTableId", "sourceCidr", "sourceVswitchId"),
    ),
    type_of("vpc", "FlowLog"): Kind(
        id="fl-{hex}",
        arn=tagged("vpc", "flowlog"),
        outputs={"status": "Active", "flowLogId": "fl-{hex}"},
        fixed=("logStoreName", "projectName", "resourceId", "resourceType", "trafficType"),
    ),
    type_of("ecs", "EipAddress"): Kind(
        id="eip-{hex}",
        arn=tagged("vpc", "eip"),
        outputs={"ipAddress": "47.93.10.{byte}", "status": "Available"},
        fixed=("internetChargeType", "isp", "paymentType"),
    ),
    type_of("ecs", "EipAssociation"): Kind(
        id="{allocationId}:{instanceId}", fixed=("allocationId", "instanceId", "instanceType")
    ),
    type_of("ecs", "SecurityGroup"): Kind(
        id="sg-{hex}",
        arn=tagged("ecs", "securitygroup"),
        unique={"InvalidSecurityGroupName.Duplicate": ("vpcId", "securityGroupName")},
        fixed=("securityGroupType", "vpcId"),
    ),
    type_of("ecs", "SecurityGroupRule"): Kind(
        id="{securityGroupId}:{type}:{ipProtocol}:{portRange}:{nicType}:{cidrIp}:{policy}:1",
        outputs={"priority": 1},
        fixed=("cidrIp", "ipProtocol", "nicType", "policy", "portRange", "priority", "securityGroupId", "type"),
    ),
}

MACHINES = {
    INSTANCE: Kind(
        id="i-{hex}",
        arn=tagged("ecs", "instance"),
        outputs={"primaryIpAddress": "{address}", "networkInterfaceId": "eni-{hex}", "status": "Running"},
        fixed=("networkInterfaceTrafficMode", "networkInterfaces", "systemDiskEncrypted", "hpcClusterId"),
    ),
    TEMPLATE: Kind(
        id="lt-{hex}",
        arn=tagged("ecs", "launchtemplate"),
        outputs={"latestVersionNumber": 1, "defaultVersionNumber": 1},
        unique={"InvalidLaunchTemplateName.Duplicate": ("launchTemplateName",)},
        fixed=("launchTemplateName",),
    ),
    SCALING_GROUP: Kind(
        id="asg-{hex}",
        arn=tagged("ess", "scalinggroup"),
        unique={"InvalidScalingGroupName.Duplicate": ("scalingGroupName",)},
        fixed=("multiAzPolicy", "vpcId"),
    ),
    CONFIGURATION: Kind(id="asc-{hex}", fixed=("scalingGroupId",), part_of="scalingGroupId"),
    RULE: Kind(
        id="{scalingGroupId}:asr-{hex}",
        outputs={"ari": "ari:acs:ess:{region}:{account}:scalingrule/asr-{hex}"},
        fixed=("scalingGroupId", "scalingRuleType"),
        part_of="scalingGroupId",
    ),
    MIX: Kind(
        id="apg-{hex}",
        outputs={"status": "active"},
        fixed=("launchTemplateConfigs", "launchTemplateId", "launchTemplateVersion", "autoProvisioningGroupType"),
    ),
    DEPLOYMENT_SET: Kind(id="ds-{hex}", fixed=("domain", "granularity", "strategy")),
    HPC: Kind(id="hpc-{hex}"),
    ASSURANCE: Kind(
        id="eap-{hex}",
        arn=tagged("ecs", "elasticityassurance"),
        outputs={"status": "Active", "endTime": "2027-02-21T16:00Z"},
        fixed=("assuranceTimes", "instanceType", "privatePoolOptionsMatchCriteria", "startTime", "zoneIds"),
    ),
    type_of("ecs", "EcsKeyPair"): Kind(
        id="{keyPairName}",
        outputs={"fingerPrint": "{hex}"},
        unique={"KeyPair.AlreadyExist": ("keyPairName",)},
        fixed=("keyPairName", "publicKey"),
    ),
}

SERVICES = {
    KEY: Kind(
        id="key-{hex}",
        arn=tagged("kms", "key"),
        outputs={"arn": "acs:kms:{region}:{account}:key/{id}", "status": "Enabled"},
        fixed=("keySpec", "origin", "protectionLevel"),
        free=True,
        ghost="PendingDeletion",
    ),
    BUCKET: Kind(
        id="{bucket}",
        arn=tagged("oss", "bucket"),
        outputs={"intranetEndpoint": "oss-{region}-internal.aliyuncs.com", "owner": "{account}"},
        named="bucket",
        unique={"BucketAlreadyExists": ("bucket",)},
        fixed=("bucket", "redundancyType", "storageClass"),
    ),
    type_of("oss", "BucketAcl"): _SETTING,
    type_of("oss", "BucketPublicAccessBlock"): _SETTING,
    type_of("oss", "BucketHttpsConfig"): _SETTING,
    type_of("oss", "BucketPolicy"): _SETTING,
    type_of("oss", "BucketObject"): Kind(
        id="{key}", outputs={"etag": "{hex}", "versionId": "{hex}"}, fixed=("bucket", "key"), part_of="bucket"
    ),
    type_of("log", "Project"): Kind(
        id="{projectName}", unique={"ProjectAlreadyExist": ("projectName",)}, fixed=("projectName",)
    ),
    type_of("log", "Store"): Kind(
        id="{projectName}:{logstoreName}", fixed=("encryptConf", "logstoreName", "projectName"), part_of="projectName"
    ),
    type_of("message", "ServiceQueue"): Kind(id="{queueName}", fixed=("queueName",)),
    type_of("cms", "EventRule"): Kind(id="{ruleName}", fixed=("ruleName",)),
    type_of("cms", "AlarmContact"): Kind(id="{alarmContactName}", fixed=("alarmContactName",)),
    type_of("cms", "AlarmContactGroup"): Kind(id="{alarmContactGroupName}", fixed=("alarmContactGroupName",)),
    type_of("ram", "Role"): Kind(
        id="{roleName}",
        outputs={"arn": "acs:ram::{account}:role/{roleName}", "roleId": "{hex}"},
        unique={"EntityAlreadyExists.Role": ("roleName",)},
        fixed=("roleName",),
    ),
    type_of("ram", "Policy"): Kind(
        id="{policyName}",
        outputs={"type": "Custom", "defaultVersion": "v1"},
        unique={"EntityAlreadyExists.Policy": ("policyName",)},
        fixed=("policyName",),
    ),
    type_of("ram", "RolePolicyAttachment"): Kind(
        id="role:{policyName}:{policyType}:{roleName}", fixed=("policyName", "policyType", "roleName")
    ),
    CLUSTER: Kind(
        id="c{hex}{hex}",
        arn=tagged("cs", "cluster"),
        outputs={
            "connections": [{"apiServerIntranet": "https://10.49.0.9:6443"}],
            "rrsaMetadata": {
                "enabled": True,
                "ramOidcProviderArn": "acs:ram::1234567890123456:oidc-provider/ack-rrsa-c{hex}",
                "ramOidcProviderName": "ack-rrsa-c{hex}",
                "rrsaOidcIssuerUrl": "https://oidc-ack-cn-beijing.oss-cn-beijing.aliyuncs.com/c{hex}",
            },
            "vpcId": "vpc-of-{hex}",
            "workerRamRoleName": "KubernetesWorkerRole-{hex}",
        },
        fixed=("encryptionProviderKey", "podVswitchIds", "proxyMode", "serviceCidr", "securityGroupId"),
    ),
    type_of("cs", "KubernetesAddon"): Kind(id="{clusterId}:{name}", fixed=("clusterId", "name"), part_of="clusterId"),
    NODE_POOL: Kind(
        id="{clusterId}:np{hex}",
        outputs={"nodePoolId": "np{hex}", "scalingGroupId": "asg-of-{hex}"},
        fixed=("clusterId", "securityGroupIds"),
        part_of="clusterId",
    ),
}

KINDS: Mapping[str, Kind] = NETWORK | MACHINES | SERVICES
