"""Everything that is not EC2: identity, keys, buckets, logs, events, scaling, file systems, Kubernetes, budgets."""

from __future__ import annotations

from cloud_provider.kinds import Kind

BUCKET, OBJECT = "aws:s3/bucket:Bucket", "aws:s3/bucketObjectv2:BucketObjectv2"
SCALING_GROUP, NODE_GROUP = "aws:autoscaling/group:Group", "aws:eks/nodeGroup:NodeGroup"
WORLD = "us-east-1"  # where what has no region is told of

_SETTING = Kind(id="{bucket}", fixed=("bucket", "expectedBucketOwner"), part_of="bucket")


def _at(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{{region}}:{{account}}:{resource}"


IDENTITY = {
    "aws:iam/role:Role": Kind(
        id="{name}",
        arn="arn:aws:iam::{account}:role/{name}",
        outputs={
            "arn": "arn:aws:iam::{account}:role/{name}",
            "uniqueId": "AROA{HEX}",
            "path": "/",
            "maxSessionDuration": 3600,
        },
        named="name",
        unique={"EntityAlreadyExists": ("name",)},
        fixed=("name", "namePrefix", "path"),
        untold=("forceDetachPolicies",),
        region=WORLD,
        listed=False,
    ),
    "aws:iam/rolePolicy:RolePolicy": Kind(
        id="{role}:{name}", named="name", fixed=("name", "namePrefix", "role"), region=WORLD
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Kind(
        id="{role}/{policyArn}", fixed=("policyArn", "role"), region=WORLD
    ),
    "aws:iam/instanceProfile:InstanceProfile": Kind(
        id="{name}",
        arn="arn:aws:iam::{account}:instance-profile/{name}",
        outputs={"arn": "arn:aws:iam::{account}:instance-profile/{name}", "uniqueId": "AIPA{HEX}", "path": "/"},
        named="name",
        unique={"EntityAlreadyExists": ("name",)},
        fixed=("name", "namePrefix", "path"),
        free=True,
        region=WORLD,
    ),
    "aws:kms/key:Key": Kind(
        id="{uuid}",
        arn=_at("kms", "key/{id}"),
        outputs={"arn": _at("kms", "key/{id}"), "keyId": "{id}", "keyUsage": "ENCRYPT_DECRYPT", "multiRegion": False},
        fixed=("customerMasterKeySpec", "keyUsage", "multiRegion"),
        free=True,
        ghost="PendingDeletion",
        untold=("bypassPolicyLockoutSafetyCheck", "deletionWindowInDays"),
    ),
}

STORAGE = {
    BUCKET: Kind(
        id="{bucket}",
        arn="arn:aws:s3:::{bucket}",
        outputs={
            "arn": "arn:aws:s3:::{bucket}",
            "bucketDomainName": "{bucket}.s3.amazonaws.com",
            "bucketRegionalDomainName": "{bucket}.s3.{region}.amazonaws.com",
        },
        named="bucket",
        unique={"BucketAlreadyOwnedByYou": ("bucket",)},
        fixed=("bucket", "bucketPrefix", "objectLockEnabled"),
        untold=("forceDestroy",),
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _SETTING,
    "aws:s3/bucketVersioning:BucketVersioning": _SETTING,
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _SETTING,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _SETTING,
    "aws:s3/bucketPolicy:BucketPolicy": _SETTING,
    OBJECT: Kind(
        id="{bucket}/{key}",
        imports=("s3://{bucket}/{key}",),
        arn="arn:aws:s3:::{bucket}/{key}",
        outputs={"arn": "arn:aws:s3:::{bucket}/{key}", "etag": "{hex}", "versionId": "{uuid}"},
        fixed=("bucket", "key"),
        part_of="bucket",
        untold=("acl", "content", "contentBase64", "forceDestroy", "source", "sourceHash"),
        listed=False,
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Kind(
        id="fs-0{hex}",
        arn=_at("fsx", "file-system/{id}"),
        outputs={
            "arn": _at("fsx", "file-system/{id}"),
            "dnsName": "{id}.fsx.{region}.amazonaws.com",
            "mountName": "{mount}",
            "networkInterfaceIds": ["eni-0{hex}"],
            "ownerId": "{account}",
        },
        fixed=(
            "deploymentType",
            "efaEnabled",
            "kmsKeyId",
            "securityGroupIds",
            "storageType",
            "subnetIds",
        ),
        untold=("skipFinalBackup", "finalBackupTags"),
    ),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": Kind(
        id="dra-0{hex}",
        arn=_at("fsx", "association/{fileSystemId}/{id}"),
        outputs={"arn": _at("fsx", "association/{fileSystemId}/{id}"), "associationId": "{id}"},
        fixed=("dataRepositoryPath", "fileSystemId", "fileSystemPath"),
        untold=("batchImportMetaDataOnCreate", "deleteDataInFilesystem"),
    ),
}

EVENTS = {
    "aws:cloudwatch/logGroup:LogGroup": Kind(
        id="{name}",
        arn=_at("logs", "log-group:{name}"),
        outputs={"arn": _at("logs", "log-group:{name}"), "logGroupClass": "STANDARD"},
        named="name",
        unique={"ResourceAlreadyExistsException": ("name",)},
        fixed=("logGroupClass", "name", "namePrefix"),
        free=True,
        untold=("skipDestroy",),
    ),
    "aws:cloudwatch/eventRule:EventRule": Kind(
        id="{name}",
        imports=("default/{name}",),
        arn=_at("events", "rule/{name}"),
        outputs={"arn": _at("events", "rule/{name}"), "eventBusName": "default"},
        named="name",
        unique={"ResourceAlreadyExistsException": ("name",)},
        fixed=("eventBusName", "name", "namePrefix"),
        untold=("forceDestroy",),
    ),
    "aws:cloudwatch/eventTarget:EventTarget": Kind(
        id="{rule}-{targetId}",
        imports=("{rule}/{targetId}",),
        outputs={"eventBusName": "default"},
        named="targetId",
        fixed=("eventBusName", "rule", "targetId"),
        untold=("forceDestroy",),
    ),
    "aws:sqs/queue:Queue": Kind(
        id="https://sqs.{region}.amazonaws.com/{account}/{name}",
        arn=_at("sqs", "{name}"),
        outputs={"arn": _at("sqs", "{name}"), "url": "{id}"},
        named="name",
        unique={"QueueAlreadyExists": ("name",)},
        fixed=("fifoQueue", "name", "namePrefix"),
        free=True,
    ),
    "aws:sqs/queuePolicy:QueuePolicy": Kind(id="{queueUrl}", fixed=("queueUrl",), part_of="queueUrl"),
    "aws:budgets/budget:Budget": Kind(
        id="{account}:{name}",
        arn="arn:aws:budgets::{account}:budget/{name}",
        outputs={"arn": "arn:aws:budgets::{account}:budget/{name}", "accountId": "{account}"},
        named="name",
        unique={"DuplicateRecordException": ("name",)},
        fixed=("accountId", "name", "namePrefix"),
        region=WORLD,
        listed=False,
    ),
}

COMPUTE = {
    SCALING_GROUP: Kind(
        id="{name}",
        arn=_at("autoscaling", "autoScalingGroup:{uuid}:autoScalingGroupName/{name}"),
        outputs={
            "arn": _at("autoscaling", "autoScalingGroup:{uuid}:autoScalingGroupName/{name}"),
            "healthCheckGracePeriod": 300,
        },
        named="name",
        unique={"AlreadyExists": ("name",)},
        fixed=("name", "namePrefix"),
        untold=("forceDelete", "waitForCapacityTimeout"),
        listed=False,
    ),
    "aws:autoscaling/policy:Policy": Kind(
        id="{name}",
        imports=("{autoscalingGroupName}/{name}",),
        outputs={
            "arn": _at(
                "autoscaling", "scalingPolicy:{uuid}:autoScalingGroupName/{autoscalingGroupName}:policyName/{name}"
            )
        },
        named="name",
        fixed=("autoscalingGroupName", "name"),
        part_of="autoscalingGroupName",
    ),
    "aws:eks/cluster:Cluster": Kind(
        id="{name}",
        arn=_at("eks", "cluster/{name}"),
        outputs={
            "arn": _at("eks", "cluster/{name}"),
            "endpoint": "https://{HEX}.gr7.{region}.eks.amazonaws.com",
            "certificateAuthority": {"data": "LS0tLS1CRUdJTi0tLS0t"},
            "certificateAuthorities": [{"data": "LS0tLS1CRUdJTi0tLS0t"}],
            "identities": [{"oidcs": [{"issuer": "https://oidc.eks.{region}.amazonaws.com/id/{HEX}"}]}],
            "status": "ACTIVE",
        },
        named="name",
        unique={"ResourceInUseException": ("name",)},
        fixed=("bootstrapSelfManagedAddons", "name", "roleArn"),
        untold=("bootstrapSelfManagedAddons",),
    ),
    NODE_GROUP: Kind(
        id="{clusterName}:{nodeGroupName}",
        arn=_at("eks", "nodegroup/{clusterName}/{nodeGroupName}/{uuid}"),
        outputs={
            "arn": _at("eks", "nodegroup/{clusterName}/{nodeGroupName}/{uuid}"),
            "resources": [{"autoscalingGroups": [{"name": "eks-{nodeGroupName}-{uuid}"}]}],
            "status": "ACTIVE",
        },
        named="nodeGroupName",
        unique={"ResourceInUseException": ("clusterName", "nodeGroupName")},
        fixed=(
            "amiType",
            "capacityType",
            "clusterName",
            "diskSize",
            "instanceTypes",
            "nodeGroupName",
            "nodeRoleArn",
            "remoteAccess",
            "subnetIds",
        ),
        untold=("forceUpdateVersion",),
    ),
    "aws:eks/addon:Addon": Kind(
        id="{clusterName}:{addonName}",
        arn=_at("eks", "addon/{clusterName}/{addonName}/{uuid}"),
        outputs={"arn": _at("eks", "addon/{clusterName}/{addonName}/{uuid}"), "addonVersion": "v1.0.0-eksbuild.1"},
        unique={"ResourceInUseException": ("clusterName", "addonName")},
        fixed=("addonName", "clusterName"),
        part_of="clusterName",
        untold=("preserve", "resolveConflictsOnCreate", "resolveConflictsOnUpdate"),
    ),
    "aws:eks/accessEntry:AccessEntry": Kind(
        id="{clusterName}:{principalArn}",
        arn=_at("eks", "access-entry/{clusterName}/{principalArn}/{uuid}"),
        outputs={"accessEntryArn": _at("eks", "access-entry/{clusterName}/{principalArn}/{uuid}")},
        fixed=("clusterName", "principalArn", "type"),
        part_of="clusterName",
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Kind(
        id="{clusterName}#{principalArn}#{policyArn}",
        fixed=("accessScope", "clusterName", "policyArn", "principalArn"),
        part_of="clusterName",
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Kind(
        id="a-{hex}",
        imports=("{clusterName},{id}",),
        arn=_at("eks", "podidentityassociation/{clusterName}/{id}"),
        outputs={"associationId": "{id}", "associationArn": _at("eks", "podidentityassociation/{clusterName}/{id}")},
        fixed=("clusterName", "namespace", "serviceAccount"),
        part_of="clusterName",
    ),
}

SERVICES = IDENTITY | STORAGE | EVENTS | COMPUTE
