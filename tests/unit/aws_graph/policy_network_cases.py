"""What lets people in, or stands in the internet."""

from __future__ import annotations

from policy_samples import (
    ACL_RULE,
    ASSOCIATION,
    DEFAULT_ACL,
    DEFAULT_GROUP,
    EGRESS,
    EKS_CLUSTER,
    EKS_NODES,
    ELASTIC_IP,
    ENFORCING,
    FLOW_LOG,
    GROUP,
    HALVES,
    INGRESS,
    NETWORK_ACL,
    OLD_RULE,
    QUARTERS,
    SPREAD,
    SUBNET,
    TAGS,
    VPC,
    WORLD,
    Insecure,
    Secure,
    acl,
    eks,
    eks_nodes,
    inline,
    instance,
    kubernetes_nodes,
    made,
    network_plugin,
    of,
    opened,
    ssh,
    template,
)

INSECURE: Insecure = {
    "a dashboard from ten scattered eighths": of(
        "few-addresses-together",
        *(opened(one, fromPort=6006, toPort=6006, cidrIpv4=one) for one in SPREAD),
    ),
    "a notebook from them, each port apart": of(
        "few-addresses-together",
        *(opened(one, fromPort=8888 + i, toPort=8888 + i, cidrIpv4=one) for i, one in enumerate(SPREAD)),
    ),
    "the API of Kubernetes from scattered eighths": of(
        "few-addresses-together", eks(endpointPublicAccess=True, publicAccessCidrs=SPREAD)
    ),
    "a file server over UDP": of(
        "only-web-from-the-world", opened(ipProtocol="udp", fromPort=2049, toPort=2049, cidrIpv4=WORLD)
    ),
    "a dashboard for a prefix list": of(
        "only-web-from-the-world", opened(fromPort=8265, toPort=8265, prefixListId="pl-0123456789abcdef0")
    ),
    "a notebook of SageMaker's": of("notebook-stays-inside", made("aws:sagemaker/notebookInstance:NotebookInstance")),
    "a public database": of(
        "database-stays-inside", made("aws:rds/instance:Instance", publiclyAccessible=True, storageEncrypted=True)
    ),
    "a database in clear": of("database-stays-inside", made("aws:rds/instance:Instance")),
    "a database's password": of(
        "database-stays-inside", made("aws:rds/cluster:Cluster", storageEncrypted=True, masterPassword="[secret]")
    ),
    "a rule open to the world": of("ssh-from-the-world", opened(cidrIpv4=WORLD)),
    "a rule open to the IPv6 world": of("ssh-from-the-world", opened(cidrIpv6="::/0")),
    "all traffic from the world": of("ssh-from-the-world", made(INGRESS, ipProtocol="-1", cidrIpv4=WORLD)),
    "all ports from the world": of("ssh-from-the-world", opened(fromPort=0, toPort=65535, cidrIpv4=WORLD)),
    "a range over 22": of("ssh-from-the-world", opened(fromPort=20, toPort=25, cidrIpv4=WORLD)),
    "ports as text": of("ssh-from-the-world", opened(fromPort="22", toPort="22", cidrIpv4=WORLD)),
    "TCP by its number": of("ssh-from-the-world", opened(ipProtocol="6", cidrIpv4=WORLD)),
    "the world by an odd address": of("ssh-from-the-world", opened(cidrIpv4="203.0.113.7/0")),
    "half of the world": of("ssh-from-the-world", opened(cidrIpv4="128.0.0.0/1")),
    "halves in two rules": of("ssh-from-the-world", *(opened(f"r{i}", cidrIpv4=half) for i, half in enumerate(HALVES))),
    "quarters in an inline rule": ssh(GROUP, ingress=[inline(cidrBlocks=list(QUARTERS))]),
    "IPv6 halves": of("ssh-from-the-world", opened("a", cidrIpv6="::/1"), opened("b", cidrIpv6="8000::/1")),
    "all of the IPv6 internet": of("ssh-from-the-world", opened(cidrIpv6="2000::/3")),
    "ten scattered eighths": of("ssh-from-the-world", *(opened(one, cidrIpv4=one) for one in SPREAD)),
    "a prefix list": of("ssh-from-the-world", opened(prefixListId="pl-0123456789abcdef0")),
    "a CIDR that is not known": of("ssh-from-the-world", opened(cidrIpv4="[unknown]")),
    "a secret CIDR": of("ssh-from-the-world", opened(cidrIpv4="[secret]")),
    "unknown ports": of("ssh-from-the-world", opened(fromPort="[unknown]", toPort="[unknown]", cidrIpv4=WORLD)),
    "an inline rule open to the world": ssh(GROUP, ingress=[inline(cidrBlocks=["10.0.0.0/8", WORLD])]),
    "an inline IPv6 rule": ssh(GROUP, ingress=[inline(ipv6CidrBlocks=["::/0"])]),
    "all inline traffic": ssh(GROUP, ingress=[inline(protocol="-1", fromPort=0, toPort=0, cidrBlocks=[WORLD])]),
    "an inline prefix list": ssh(GROUP, ingress=[inline(prefixListIds=["pl-1"])]),
    "an inline ingress that is not known": ssh(GROUP, ingress="[unknown]"),
    "an open default group": ssh(DEFAULT_GROUP, ingress=[inline(protocol="all", cidrBlocks=[WORLD])]),
    "an old rule resource": ssh(OLD_RULE, type="ingress", **inline(cidrBlocks=[WORLD])),
    "an old rule, all traffic": ssh(OLD_RULE, type="ingress", protocol="-1", fromPort=0, toPort=0, cidrBlocks=[WORLD]),
    "a public interface": of("public-address", template(networkInterfaces=[{"associatePublicIpAddress": "true"}])),
    "a public instance": of("public-address", instance(associatePublicIpAddress=True)),
    "an address that is not known": of(
        "public-address", template(networkInterfaces=[{"associatePublicIpAddress": "[unknown]"}])
    ),
    "an entrance with two interfaces": of(
        "public-address",
        template(
            tags={**TAGS, "gpufleet:entrance": "true"},
            networkInterfaces=[{"associatePublicIpAddress": "true"}, {"interfaceType": "efa-only"}],
        ),
    ),
    "a public subnet": of("public-by-default", made(SUBNET, tags=TAGS, mapPublicIpOnLaunch=True)),
    "a port below and above": of("ssh-from-the-world", opened(fromPort=22, toPort=23, cidrIpv4=WORLD)),
    "a half in a group, a half in a rule": of(
        "ssh-from-the-world",
        made(GROUP, "a", tags=TAGS, ingress=[inline(cidrBlocks=[HALVES[0]])]),
        opened("b", cidrIpv4=HALVES[1]),
    ),
    "an old rule with a prefix list": ssh(OLD_RULE, type="ingress", **inline(prefixListIds=["pl-1"])),
    "an old IPv6 rule": ssh(OLD_RULE, type="ingress", **inline(ipv6CidrBlocks=["::/0"])),
    "an old rule without a type": ssh(OLD_RULE, **inline(cidrBlocks=[WORLD])),
    "a rule without ports": of("ssh-from-the-world", made(INGRESS, ipProtocol="tcp", cidrIpv4=WORLD)),
    "a number for all traffic": of("ssh-from-the-world", made(INGRESS, ipProtocol=-1, cidrIpv4=WORLD)),
    "a network ACL open to the world": ssh(NETWORK_ACL, ingress=[acl(cidrBlock=WORLD)]),
    "a network ACL for all traffic": ssh(NETWORK_ACL, ingress=[acl(protocol="-1", cidrBlock=WORLD)]),
    "a network ACL open to IPv6": ssh(NETWORK_ACL, ingress=[acl(ipv6CidrBlock="::/0")]),
    "the default network ACL, opened": ssh(DEFAULT_ACL, ingress=[acl(protocol="-1", cidrBlock=WORLD)]),
    "a rule of a network ACL": ssh(
        ACL_RULE, egress=False, ruleAction="allow", protocol="6", fromPort=0, toPort=1024, cidrBlock=WORLD
    ),
    "halves in two rules of a network ACL": of(
        "ssh-from-the-world", *(made(ACL_RULE, half, **acl(cidrBlock=half)) for half in HALVES)
    ),
    "EKS nodes with a key and no groups": of("eks-node-ssh", eks_nodes(remoteAccess={"ec2SshKey": "ops"})),
    "a notebook for the world": of("only-web-from-the-world", opened(fromPort=8888, toPort=8888, cidrIpv4=WORLD)),
    "Ray's dashboard for the world": of("only-web-from-the-world", opened(fromPort=8265, toPort=8265, cidrIpv6="::/0")),
    "web ports and all above": of("only-web-from-the-world", opened(fromPort=443, toPort=65535, cidrIpv4=WORLD)),
    "a file server for half of the world": of(
        "only-web-from-the-world", opened(fromPort=2049, toPort=2049, cidrIpv4=HALVES[0])
    ),
    "an inline rendezvous store": of(
        "only-web-from-the-world",
        made(GROUP, tags=TAGS, ingress=[inline(fromPort=29400, toPort=29400, cidrBlocks=[WORLD])]),
    ),
    "a control plane that keeps no record": of("eks-audit-log", made(EKS_CLUSTER, tags=TAGS)),
    "EKS nodes of EKS's own making": of("eks-nodes-have-a-template", made(EKS_NODES, tags=TAGS)),
    "a default group with rules": of(
        "closed-default-group", made(DEFAULT_GROUP, ingress=[{"protocol": "-1", "self": True}], egress=[])
    ),
    "a default group that lets out": of(
        "closed-default-group", made(DEFAULT_GROUP, egress=[{"protocol": "-1", "cidrBlocks": [WORLD]}])
    ),
    "the default VPC": of("no-default-network", made("aws:ec2/defaultVpc:DefaultVpc")),
    "a default subnet": of("no-default-network", made("aws:ec2/defaultSubnet:DefaultSubnet")),
    "a VPC without a flow log": of("vpc-has-a-flow-log", made(VPC, tags=TAGS, cidrBlock="10.0.0.0/16")),
    "a flow log of another VPC": of(
        "vpc-has-a-flow-log",
        made(VPC, tags=TAGS, cidrBlock="10.0.0.0/16"),
        made(FLOW_LOG, vpcId="vpc-0123456789abcdef0"),
    ),
    "an API server for the world": of("eks-endpoint-from-the-world", eks(publicAccessCidrs=[WORLD])),
    "an API server without a word": of("eks-endpoint-from-the-world", eks()),
    "an API server for halves of the world": of(
        "eks-endpoint-from-the-world", eks(endpointPublicAccess=True, publicAccessCidrs=list(HALVES))
    ),
    "an API server for unknown networks": of("eks-endpoint-from-the-world", eks(publicAccessCidrs="[unknown]")),
    "an Elastic IP on a machine": of("no-public-address-later", made(ELASTIC_IP, tags=TAGS, instance="${dev.id}")),
    "an Elastic IP associated": of(
        "no-public-address-later", made(ASSOCIATION, allocationId="${ip.id}", networkInterfaceId="eni-1")
    ),
    "a subnet with IPv6 by default": of("public-by-default", made(SUBNET, tags=TAGS, assignIpv6AddressOnCreation=True)),
    "a subnet that is not known to be private": of(
        "public-by-default", made(SUBNET, tags=TAGS, mapPublicIpOnLaunch="[unknown]")
    ),
    "an interface with IPv6": of("public-address", template(networkInterfaces=[{"ipv6AddressCount": 1}])),
    "an instance with IPv6": of("public-address", instance(ipv6Addresses=["2001:db8::1"])),
}

SECURE: Secure = {
    "a dashboard from three networks": [
        opened(str(i), fromPort=6006, toPort=6006, cidrIpv4=one) for i, one in enumerate(SPREAD[:3])
    ],
    "a time server for the office": [opened(ipProtocol="udp", fromPort=123, toPort=123, cidrIpv4="203.0.113.0/24")],
    "a notebook inside": [
        made("aws:sagemaker/notebookInstance:NotebookInstance", directInternetAccess="Disabled", rootAccess="Disabled")
    ],
    "a database inside": [made("aws:rds/instance:Instance", storageEncrypted=True, manageMasterUserPassword=True)],
    "a named network": [opened(cidrIpv4="203.0.113.0/24")],
    "a named IPv6 network": [opened(cidrIpv6="2001:db8:40::/48")],
    "private ranges": [opened(one, cidrIpv4=one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")],
    "a group as the peer": [opened(referencedSecurityGroupId="sg-1")],
    "all traffic from the group itself": [made(INGRESS, ipProtocol="-1", referencedSecurityGroupId="sg-1")],
    "HTTPS for the world": [opened(fromPort=443, toPort=443, cidrIpv4=WORLD)],
    "UDP for the world": [opened(ipProtocol="udp", cidrIpv4=WORLD)],
    "ping for the world": [made(INGRESS, ipProtocol="icmp", fromPort=8, toPort=-1, cidrIpv4=WORLD)],
    "SSH out": [made(EGRESS, ipProtocol="tcp", fromPort=22, toPort=22, cidrIpv4=WORLD)],
    "an old rule out": [made(OLD_RULE, type="egress", **inline(cidrBlocks=[WORLD]))],
    "an inline rule for a named network": [made(GROUP, tags=TAGS, ingress=[inline(cidrBlocks=["203.0.113.0/24"])])],
    "an emptied default group": [made(DEFAULT_GROUP, ingress=[], egress=[])],
    "an entrance": [
        template(
            networkInterfaces=[{"associatePublicIpAddress": "true"}],
            tagSpecifications=[
                {"resourceType": kind, "tags": {**TAGS, "gpufleet:entrance": "true"}} for kind in ("instance", "volume")
            ],
        )
    ],
    "a fabric of five interfaces": [template(networkInterfaces=[{}, *[{"interfaceType": "efa-only"}] * 4])],
    "SSH from an own network through an ACL": [made(NETWORK_ACL, ingress=[acl(cidrBlock="203.0.113.0/24")])],
    "a network ACL that denies": [made(NETWORK_ACL, ingress=[acl(action="deny", cidrBlock=WORLD)])],
    "a network ACL for web": [made(NETWORK_ACL, ingress=[acl(fromPort=443, toPort=443, cidrBlock=WORLD)])],
    "a network ACL's way out": [made(ACL_RULE, egress=True, ruleAction="allow", protocol="-1", cidrBlock=WORLD)],
    "the group itself, by an old rule": [made(OLD_RULE, type="ingress", protocol="-1", self=True)],
    "web for the world, both ports": [
        opened("a", fromPort=80, toPort=80, cidrIpv4=WORLD),
        opened("b", fromPort=443, toPort=443, cidrIpv6="::/0"),
    ],
    "a notebook for a named network": [opened(fromPort=8888, toPort=8888, cidrIpv4="203.0.113.0/24")],
    "EKS nodes with a key for a group": [
        *kubernetes_nodes(eks_nodes(remoteAccess={"ec2SshKey": "ops", "sourceSecurityGroupIds": ["sg-1"]}))
    ],
    "a private API server": [eks(endpointPrivateAccess=True, endpointPublicAccess=False), network_plugin(ENFORCING)],
    "an API server for named networks": [eks(publicAccessCidrs=["203.0.113.0/24"]), network_plugin(ENFORCING)],
    "a VPC with a flow log": [
        made(VPC, "net", tags=TAGS, cidrBlock="10.0.0.0/16"),
        made(FLOW_LOG, vpcId="${net.id}", trafficType="ALL"),
    ],
    "a NAT gateway's address": [made(ELASTIC_IP, tags=TAGS, domain="vpc")],
    "a private subnet": [made(SUBNET, tags=TAGS, mapPublicIpOnLaunch=False)],
}
