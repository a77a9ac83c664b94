"""EC2: networks, firewalls, templates and what is started from them."""

from __future__ import annotations

from cloud_provider.kinds import Kind

ARN = "arn:aws:ec2:{region}:{account}:"
INSTANCE, VOLUME, INTERFACE = (
    "aws:ec2/instance:Instance",
    "aws:ebs/volume:Volume",
    "aws:ec2/networkInterface:NetworkInterface",
)
VPC, SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
TEMPLATE, FLEET = "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/fleet:Fleet"

RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
BLOCK = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"

_RULE = Kind(
    id="sgr-0{hex}",
    arn=ARN + "security-group-rule/{id}",
    outputs={"arn": ARN + "security-group-rule/{id}", "securityGroupRuleId": "{id}"},
    unique={
        "InvalidPermission.Duplicate": (
            "securityGroupId",
            "ipProtocol",
            "fromPort",
            "toPort",
            "cidrIpv4",
            "cidrIpv6",
            "prefixListId",
            "referencedSecurityGroupId",
        )
    },
    fixed=("securityGroupId",),
    part_of="securityGroupId",
)

EC2 = {
    VPC: Kind(
        id="vpc-0{hex}",
        arn=ARN + "vpc/{id}",
        outputs={
            "arn": ARN + "vpc/{id}",
            "ownerId": "{account}",
            "mainRouteTableId": "rtb-0{hex}",
            "defaultRouteTableId": "rtb-0{hex}",
            "defaultNetworkAclId": "acl-0{hex}",
            "defaultSecurityGroupId": "sg-0{hex}",
            "dhcpOptionsId": "dopt-0{hex}",
            "instanceTenancy": "default",
        },
        fixed=("cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"),
    ),
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Kind(
        id="sg-0{vpc}",
        arn=ARN + "security-group/{id}",
        outputs={"arn": ARN + "security-group/{id}", "ownerId": "{account}", "name": "default"},
        fixed=("vpcId",),
        part_of="vpcId",
    ),
    SUBNET: Kind(
        id="subnet-0{hex}",
        arn=ARN + "subnet/{id}",
        outputs={"arn": ARN + "subnet/{id}", "ownerId": "{account}"},
        fixed=("availabilityZone", "availabilityZoneId", "cidrBlock", "ipv6Native", "outpostArn", "vpcId"),
    ),
    "aws:ec2/routeTable:RouteTable": Kind(
        id="rtb-0{hex}",
        arn=ARN + "route-table/{id}",
        outputs={"arn": ARN + "route-table/{id}", "ownerId": "{account}"},
        fixed=("vpcId",),
    ),
    "aws:ec2/route:Route": Kind(
        id="r-{routeTableId}{crc}",
        imports=("{routeTableId}_{destinationCidrBlock}",),
        outputs={"origin": "CreateRoute", "state": "active"},
        unique={"RouteAlreadyExists": ("routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock")},
        fixed=("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId", "routeTableId"),
        part_of="routeTableId",
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Kind(
        id="rtbassoc-0{hex}",
        imports=("{subnetId}/{routeTableId}",),
        unique={"Resource.AlreadyAssociated": ("subnetId", "gatewayId")},
        fixed=("gatewayId", "subnetId"),
    ),
    "aws:ec2/internetGateway:InternetGateway": Kind(
        id="igw-0{hex}",
        arn=ARN + "internet-gateway/{id}",
        outputs={"arn": ARN + "internet-gateway/{id}", "ownerId": "{account}"},
        unique={"Resource.AlreadyAssociated": ("vpcId",)},
    ),
    "aws:ec2/eip:Eip": Kind(
        id="eipalloc-0{hex}",
        arn=ARN + "elastic-ip/{id}",
        outputs={
            "arn": ARN + "elastic-ip/{id}",
            "allocationId": "{id}",
            "publicIp": "198.51.100.{byte}",
            "publicDns": "ec2-198-51-100-{byte}.compute-1.amazonaws.com",
            "publicIpv4Pool": "amazon",
            "networkBorderGroup": "{region}",
        },
        fixed=("address", "domain", "ipamPoolId", "networkBorderGroup", "publicIpv4Pool"),
    ),
    "aws:ec2/natGateway:NatGateway": Kind(
        id="nat-0{hex}",
        arn=ARN + "natgateway/{id}",
        outputs={
            "networkInterfaceId": "eni-0{hex}",
            "associationId": "eipassoc-0{hex}",
            "publicIp": "198.51.100.{byte}",
        },
        fixed=("allocationId", "availabilityMode", "connectivityType", "privateIp", "subnetId", "vpcId"),
        ghost="deleted",
    ),
    "aws:ec2/securityGroup:SecurityGroup": Kind(
        id="sg-0{hex}",
        arn=ARN + "security-group/{id}",
        outputs={"arn": ARN + "security-group/{id}", "ownerId": "{account}", "description": "Managed by Pulumi"},
        named="name",
        unique={"InvalidGroup.Duplicate": ("name", "vpcId")},
        fixed=("description", "name", "namePrefix", "vpcId"),
        untold=("revokeRulesOnDelete",),
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _RULE,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _RULE,
    "aws:ec2/vpcEndpoint:VpcEndpoint": Kind(
        id="vpce-0{hex}",
        arn=ARN + "vpc-endpoint/{id}",
        outputs={
            "arn": ARN + "vpc-endpoint/{id}",
            "ownerId": "{account}",
            "state": "available",
            "prefixListId": "pl-{hex}",
        },
        unique={"RouteAlreadyExists": ("vpcId", "serviceName", "vpcEndpointType")},
        fixed=("serviceName", "serviceRegion", "vpcEndpointType", "vpcId"),
    ),
    "aws:ec2/flowLog:FlowLog": Kind(
        id="fl-0{hex}",
        arn=ARN + "vpc-flow-log/{id}",
        outputs={"arn": ARN + "vpc-flow-log/{id}"},
        fixed=(
            "destinationOptions",
            "iamRoleArn",
            "logDestination",
            "logDestinationType",
            "logFormat",
            "maxAggregationInterval",
            "subnetId",
            "trafficType",
            "vpcId",
        ),
    ),
    "aws:ec2/keyPair:KeyPair": Kind(
        id="{keyName}",
        arn=ARN + "key-pair/key-0{hex}",
        outputs={"arn": ARN + "key-pair/{keyName}", "keyPairId": "key-0{hex}", "keyType": "ed25519"},
        named="keyName",
        unique={"InvalidKeyPair.Duplicate": ("keyName",)},
        fixed=("keyName", "keyNamePrefix", "publicKey"),
        free=True,
        untold=("publicKey",),
    ),
    "aws:ec2/placementGroup:PlacementGroup": Kind(
        id="{name}",
        arn=ARN + "placement-group/{name}",
        outputs={"arn": ARN + "placement-group/{name}", "placementGroupId": "pg-0{hex}"},
        named="name",
        unique={"InvalidPlacementGroup.Duplicate": ("name",)},
        fixed=("name", "partitionCount", "spreadLevel", "strategy"),
    ),
    TEMPLATE: Kind(
        id="lt-0{hex}",
        arn=ARN + "launch-template/{id}",
        outputs={"arn": ARN + "launch-template/{id}", "latestVersion": 1, "defaultVersion": 1},
        named="name",
        unique={"InvalidLaunchTemplateName.AlreadyExistsException": ("name",)},
        fixed=("name", "namePrefix"),
        free=True,
        untold=("updateDefaultVersion",),
    ),
    INSTANCE: Kind(
        id="i-0{hex}",
        arn=ARN + "instance/{id}",
        outputs={"arn": ARN + "instance/{id}", "instanceState": "running"},
        fixed=(
            "ami",
            "associatePublicIpAddress",
            "availabilityZone",
            "keyName",
            "launchTemplate",
            "placementGroup",
            "privateIp",
            "subnetId",
            "tenancy",
        ),
        ghost="terminated",
        untold=("userDataReplaceOnChange", "forceDestroy"),
    ),
    FLEET: Kind(
        id="fleet-{uuid}",
        arn=ARN + "fleet/{id}",
        outputs={"arn": ARN + "fleet/{id}", "fleetState": "active", "fulfilledCapacity": 0},
        fixed=(
            "onDemandOptions",
            "replaceUnhealthyInstances",
            "spotOptions",
            "targetCapacitySpecification.onDemandTargetCapacity",
            "targetCapacitySpecification.spotTargetCapacity",
            "terminateInstancesWithExpiration",
            "type",
            "validFrom",
            "validUntil",
        ),
        ghost="deleted",
        untold=("terminateInstances",),
    ),
    RESERVATION: Kind(
        id="cr-0{hex}",
        arn=ARN + "capacity-reservation/{id}",
        outputs={"arn": ARN + "capacity-reservation/{id}", "ownerId": "{account}"},
        fixed=("availabilityZone", "instancePlatform", "instanceType", "placementGroupArn", "tenancy"),
    ),
    BLOCK: Kind(
        id="cr-0{hex}",
        arn=ARN + "capacity-reservation/{id}",
        outputs={
            "arn": ARN + "capacity-reservation/{id}",
            "reservationType": "capacity-block",
            "endDate": "2026-12-01T11:30Z",
        },
        fixed=("capacityBlockOfferingId", "instancePlatform"),
    ),
    VOLUME: Kind(id="vol-0{hex}", arn=ARN + "volume/{id}"),
    INTERFACE: Kind(id="eni-0{hex}", arn=ARN + "network-interface/{id}"),
}
