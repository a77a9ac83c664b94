"""What nodes are made from, what they cost, whose they are, and what they are told."""

from __future__ import annotations

import json

from policy_samples import (
    ACCESS_KEY,
    BUCKET,
    EKS_CLUSTER,
    GITHUB,
    JWT,
    PEM,
    PURCHASE,
    ROOT_DISK,
    SCALING,
    SPOT_INSTANCE,
    SUBNET,
    TAGS,
    Insecure,
    Secure,
    fleet,
    instance,
    made,
    of,
    scaling,
    script,
    template,
    the_provider,
)

INSECURE: Insecure = {
    "tokens optional": of("imdsv2", template(metadataOptions={"httpTokens": "optional", "httpPutResponseHopLimit": 2})),
    "no metadata options": of("imdsv2", template(metadataOptions=None)),
    "no hop limit": of("imdsv2", template(metadataOptions={"httpTokens": "required"})),
    "many hops": of("imdsv2", template(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 64})),
    "unknown metadata options": of("imdsv2", template(metadataOptions="[unknown]")),
    "an instance with its own weak options": of("imdsv2", instance(metadataOptions={"httpTokens": "optional"})),
    "an instance without template": of("imdsv2", instance(launchTemplate=None, rootBlockDevice={"encrypted": True})),
    "a plain root volume": of("encrypted-volumes", template(blockDeviceMappings=[ROOT_DISK])),
    "a second, plain volume": of(
        "encrypted-volumes",
        template(blockDeviceMappings=[{"ebs": {"encrypted": "true"}}, {"ebs": {"encrypted": "false"}}]),
    ),
    "no volume named": of("encrypted-volumes", template(blockDeviceMappings=None)),
    "only local disks named": of("encrypted-volumes", template(blockDeviceMappings=[{"virtualName": "ephemeral0"}])),
    "a plain instance volume": of(
        "encrypted-instance-volumes", instance(ebsBlockDevices=[{"deviceName": "/dev/sdf"}], rootBlockDevice={})
    ),
    "a spot template without cap": of("spot-price-cap", template(instanceMarketOptions={"marketType": "spot"})),
    "a spot request without cap": of("spot-request-price-cap", made(SPOT_INSTANCE)),
    "a spot fleet without cap": of("fleet-price-cap", fleet(launchTemplateConfigs=[{"overrides": [{}]}])),
    "a spot fleet without overrides": of("fleet-price-cap", fleet(launchTemplateConfigs=[{}])),
    "a mixed fleet without cap": of(
        "fleet-price-cap",
        fleet(
            targetCapacitySpecification={"defaultTargetCapacityType": "on-demand", "spotTargetCapacity": 2},
            launchTemplateConfigs=[{"overrides": [{"instanceType": "g6.xlarge"}]}],
        ),
    ),
    "a scaling group without cap": of("group-price-cap", scaling(onDemandPercentageAboveBaseCapacity=0)),
    "a fleet that outlives its stack": of("fleet-ends-with-the-stack", fleet(terminateInstances=None)),
    "no provider": of("explicit-provider", made(SUBNET, tags=TAGS, provider="")),
    "the default provider": of(
        "explicit-provider",
        made(SUBNET, tags=TAGS, provider="urn:pulumi:x::gpufleet::pulumi:providers:aws::default_7_51_1"),
    ),
    "a provider without region": of("provider-region", the_provider(region="")),
    "a bucket without tags": of("required-tags", made(BUCKET, "data")),
    "a scaling group without tags": of("required-group-tags", made(SCALING)),
    "nodes without tags": of("tags-on-what-templates-make", template(tagSpecifications=None)),
    "volumes without tags": of(
        "tags-on-what-templates-make", template(tagSpecifications=[{"resourceType": "instance", "tags": TAGS}])
    ),
    "an access key": of("secrets-in-user-data", template(userData=script(f"export KEY_ID={ACCESS_KEY}"))),
    "a private key": of("secrets-in-user-data", template(userData=script(f"cat <<E\n{PEM}\nE"))),
    "a password": of("secrets-in-user-data", template(userData=script("DB_PASSWORD='hunter2hunter2'"))),
    "a token, compressed": of("secrets-in-user-data", template(userData=script(f"x {GITHUB}", packed=True))),
    "a token, in plain": of("secrets-in-user-data", instance(userData=f"#!/bin/sh\nlogin {GITHUB}")),
    "a password in an address": of("secrets-in-user-data", template(userData=script("git clone https://me:pw0rd@h/r"))),
    "a secret in JSON": of("secrets-in-user-data", template(userData=script('{"api_key": "0123456789abcdef"}'))),
    "tokens that are not known": of(
        "imdsv2", template(metadataOptions={"httpTokens": "[unknown]", "httpPutResponseHopLimit": 2})
    ),
    "a spot request without metadata options": of("imdsv2", made(SPOT_INSTANCE, spotPrice="1")),
    "a launch configuration": of("imdsv2", made("aws:ec2/launchConfiguration:LaunchConfiguration")),
    "an encryption that is not known": of(
        "encrypted-volumes", template(blockDeviceMappings=[{"ebs": {"encrypted": "[unknown]"}}])
    ),
    "a spot template with a cap of nothing": of(
        "spot-price-cap", template(instanceMarketOptions={"marketType": "spot", "spotOptions": {"maxPrice": ""}})
    ),
    "a scaling group with a share of spot": of("group-price-cap", scaling(onDemandPercentageAboveBaseCapacity=20)),
    "a fleet that keeps what is too much": of(
        "fleet-keeps-nobody", fleet(excessCapacityTerminationPolicy="no-termination")
    ),
    "a fleet that rebalances into twice the bill": of(
        "fleet-keeps-nobody",
        fleet(spotOptions={"maintenanceStrategies": {"capacityRebalance": {"replacementStrategy": "launch"}}}),
    ),
    "a spot fleet request that outlives its stack": of(
        "fleet-ends-with-the-stack", made("aws:ec2/spotFleetRequest:SpotFleetRequest", spotPrice="1")
    ),
    "a purchase that a deployment may forget": of("bought-capacity-is-protected", made(PURCHASE, tags=TAGS)),
    "a cluster without tags": of("required-tags", made(EKS_CLUSTER)),
    "a tag without a value": of("required-tags", made(SUBNET, tags={**TAGS, "gpufleet:stack": ""})),
    "a provider with an access key": of("provider-credentials", the_provider(accessKey="[secret]")),
    "a provider that trusts anybody": of("provider-over-tls", the_provider(insecure="true")),
    "a key of Weights & Biases": of(
        "secrets-in-user-data",
        template(userData=script("wandb login --relogin " + "0123456789abcdef" * 2 + "01234567")),
    ),
    "a password for a login": of("secrets-in-user-data", template(userData=script("echo ubuntu:gpu12345 | chpasswd"))),
    "a token in a tag": of("secrets-in-tags", template(tags={**TAGS, "hub": GITHUB})),
    "a token in a tag of what a template makes": of(
        "secrets-in-tags",
        template(
            tagSpecifications=[
                {"resourceType": kind, "tags": {**TAGS, "token": "abcdefgh1234"}} for kind in ("instance", "volume")
            ]
        ),
    ),
    "a signed web token": of("secrets-in-user-data", template(userData=script(f"curl -H {JWT}"))),
    "a token of a package index": of(
        "secrets-in-user-data", template(userData=script("export PIP_TOKEN=abcdefgh1234"))
    ),
}

SECURE: Secure = {
    "a sound template": [template()],
    "a template for hosts only": [
        template(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1}),
    ],
    "no metadata service at all": [template(metadataOptions={"httpEndpoint": "disabled"})],
    "a local disk beside the root": [
        template(blockDeviceMappings=[{"ebs": {"encrypted": "true"}}, {"virtualName": "ephemeral0"}])
    ],
    "an instance of a template": [instance()],
    "a capped spot fleet": [fleet()],
    "a fleet capped as a whole": [
        fleet(spotOptions={"maxTotalPrice": "50"}, launchTemplateConfigs=[{"overrides": [{}]}])
    ],
    "an on-demand fleet": [
        fleet(
            targetCapacitySpecification={"defaultTargetCapacityType": "on-demand", "totalTargetCapacity": 4},
            launchTemplateConfigs=[{}],
        )
    ],
    "a capped spot template": [
        template(instanceMarketOptions={"marketType": "spot", "spotOptions": {"maxPrice": "1.2"}})
    ],
    "a capacity block": [template(instanceMarketOptions={"marketType": "capacity-block"})],
    "a capped scaling group": [scaling(onDemandPercentageAboveBaseCapacity=0, spotMaxPrice="0.6")],
    "an on-demand scaling group": [scaling(onDemandPercentageAboveBaseCapacity=100)],
    "tags from the provider": [
        the_provider(defaultTags=json.dumps({"tags": TAGS})),
        made(SUBNET, cidrBlock="10.0.0.0/24"),
    ],
    "user data that asks for a token": [
        template(userData=script('TOKEN=$(curl -X PUT "$I/token")\ncurl -H "X-aws-ec2-metadata-token: $TOKEN"'))
    ],
    "user data with a hash": [template(userData=script('{"sha256": "' + "0123456789abcdef" * 4 + '"}'))],
    "another cloud's resource": [made("gcp:compute/network:Network")],
    "a protected purchase": [made(PURCHASE, protect=True, tags=TAGS)],
    "a fleet that rebalances one by one": [
        fleet(
            spotOptions={
                "maintenanceStrategies": {"capacityRebalance": {"replacementStrategy": "launch-before-terminate"}}
            }
        )
    ],
    "a provider by a profile": [the_provider(profile="ops")],
    "an encrypted instance without template": [
        instance(
            launchTemplate=None,
            rootBlockDevice={"encrypted": True},
            metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1},
        )
    ],
}
