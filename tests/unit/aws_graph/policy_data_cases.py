"""What is kept: buckets, volumes, file systems, keys, messages."""

from __future__ import annotations

from policy_samples import (
    BLOCK,
    BUCKET_POLICY,
    EFS,
    KEY,
    LUSTRE,
    QUEUE,
    SHOWN_BUCKET,
    TAGS,
    TOPIC,
    VERSIONING,
    VOLUME,
    Insecure,
    Secure,
    bucket,
    eks,
    key,
    made,
    of,
    tls_only,
)

INSECURE: Insecure = {
    "a plain volume": of("encrypted-storage", made(VOLUME, tags=TAGS, size=10)),
    "a key that never rotates": of("kms-rotation", key(enableKeyRotation=False)),
    "a key that does not say": of("kms-rotation", made(KEY, tags=TAGS)),
    "a bucket without a block": of("private-bucket", *(r for r in bucket() if r.type != BLOCK)),
    "a bucket with a public list": of("private-acl", *bucket(acl="public-read")),
    "a block with a switch off": of("public-access-block", *bucket(block={"blockPublicPolicy": False})),
    "a bucket without TLS policy": of("tls-only-bucket", *(r for r in bucket() if r.type != BUCKET_POLICY)),
    "a TLS policy for one action": of("tls-only-bucket", *bucket(guard=tls_only(Action="s3:GetObject"))),
    "a TLS policy for one principal": of("tls-only-bucket", *bucket(guard=tls_only(Principal={"AWS": "1"}))),
    "a TLS policy under one more condition": of(
        "tls-only-bucket",
        *bucket(guard=tls_only(Condition={"Bool": {"aws:SecureTransport": "false", "aws:ViaAWSService": "true"}})),
    ),
    "a plain copy of a snapshot": of(
        "encrypted-storage", made("aws:ebs/snapshotCopy:SnapshotCopy", sourceRegion="us-east-1")
    ),
    "a plain copy of an image": of("encrypted-storage", made("aws:ec2/amiCopy:AmiCopy", sourceAmiId="ami-1")),
    "a plain file system": of("encrypted-storage", made(EFS, tags=TAGS, protect=True)),
    "encryption by default, switched off": of(
        "encrypted-by-default", made("aws:ebs/encryptionByDefault:EncryptionByDefault", enabled=False)
    ),
    "a topic without a key": of("encrypted-messages", made(TOPIC)),
    "a plain queue": of("encrypted-messages", made(QUEUE, tags=TAGS, sqsManagedSseEnabled=False)),
    "plain secrets of Kubernetes": of("encrypted-kubernetes-secrets", eks(encrypted=False)),
    "a list of its own that is public": of("private-acl", made("aws:s3/bucketAcl:BucketAcl", acl="public-read-write")),
    "an account without a block": of(
        "public-access-block", made("aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock", blockPublicAcls=True)
    ),
    "a web site": of(
        "no-website", made("aws:s3/bucketWebsiteConfiguration:BucketWebsiteConfiguration", bucket="${data.id}")
    ),
    "a TLS policy that is not known": of("tls-only-bucket", *bucket(guard="[unknown]")),
    "a bucket that goes with its objects": of("bucket-keeps-its-objects", *bucket(forceDestroy=True)),
    "a bucket that may go with its objects": of("bucket-keeps-its-objects", *bucket(forceDestroy="[unknown]")),
    "a bucket that forgets": of("bucket-keeps-versions", *bucket(versions="Suspended")),
    "a bucket without a word on versions": of(
        "bucket-keeps-versions", *(each for each in bucket() if each.type != VERSIONING)
    ),
    "a file system without a last backup": of("file-system-leaves-a-copy", made(LUSTRE, tags=TAGS)),
    "a file system that skips its backup": of(
        "file-system-leaves-a-copy", made(LUSTRE, tags=TAGS, skipFinalBackup=True)
    ),
    "a volume that anybody may delete": of("guarded-storage", made(VOLUME, tags=TAGS, encrypted=True)),
    "a shared file system that anybody may delete": of("guarded-storage", made(EFS, tags=TAGS, encrypted=True)),
    "a key that dies in a week": of("key-dies-slowly", key(deletionWindowInDays=7)),
    "a key that dies at an unknown time": of("key-dies-slowly", key(deletionWindowInDays="[unknown]")),
}

SECURE: Secure = {
    "an asymmetric key": [made(KEY, tags=TAGS, customerMasterKeySpec="RSA_4096")],
    "a sound bucket": bucket(),
    "a bucket that is said to be removable": bucket(forceDestroy=True, tags={**TAGS, "gpufleet:removable": "true"}),
    "a file system that leaves a backup": [made(LUSTRE, tags=TAGS, skipFinalBackup=False)],
    "a file system that shows a bucket": [
        made(LUSTRE, "fast", tags=TAGS, skipFinalBackup=True),
        made(SHOWN_BUCKET, fileSystemId="${fast.id}"),
    ],
    "a protected volume": [made(VOLUME, tags=TAGS, encrypted=True, protect=True)],
    "a volume with a last snapshot": [made(VOLUME, tags=TAGS, encrypted=True, finalSnapshot=True)],
    "an encrypted, protected file system": [made(EFS, tags=TAGS, encrypted=True, protect=True)],
    "a key with a month's notice": [key(deletionWindowInDays=30)],
    "a queue with AWS's own encryption": [made(QUEUE, tags=TAGS)],
    "a topic with a key": [made(TOPIC, kmsMasterKeyId="${key.arn}")],
}
